"""What the address of a list of jobs selects: state, filters, time, search, text of arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from ..dialects import is_storable
from ..dialects.database import Database
from ..listings.argument_search import ArgumentSearch
from ..listings.job_listing import JobListing
from ..listings.period import Moment, Period, read_moment
from ..listings.states import ALL, FAILED, FINISHED, STATES, State, count_states

#: Parameters that compare a column with a value.
COMPARED = ("queue", "task", "key", "error")
#: The parameter with a text in the arguments of jobs, and those of the time.
ARGUMENTS, SINCE, UNTIL = "arguments", "since", "until"
#: The states whose lists heed the time, by their names: of the end, or of the enqueue of all jobs.
TIMED = (ALL.name, FAILED.name, FINISHED.name)


def state_in(request: HttpRequest) -> State:
    """Return the state that a request names; all together for any other word."""
    return STATES.get(request.GET.get("state", ""), ALL)


def listing_in(page: Any, request: HttpRequest, search: str) -> JobListing:
    """Return the jobs that a request selects on a page of jobs.

    Raises ``IncorrectLookupParameters`` for what makes no sense, and ``PermissionDenied`` for a
    search in arguments that the user may not see: without it, the list would be a longer one.
    """
    visible, state = page.visible_jobs(request), state_in(request)
    given = {name: request.GET[name] for name in COMPARED if request.GET.get(name)}
    if not all(map(is_storable, (*given.values(), search))):
        raise IncorrectLookupParameters
    return JobListing(
        visible,
        state,
        given,
        search.strip(),
        _arguments(page, request),
        _period(request, visible.jobs.db, state),
        count_states(visible.jobs.db, visible),
    )


def _arguments(page: Any, request: HttpRequest) -> ArgumentSearch | None:
    text = request.GET.get(ARGUMENTS, "").strip()
    if not text:
        return None
    if not page.has_view_arguments_permission(request):
        raise PermissionDenied
    return ArgumentSearch(text, partial(page.has_view_arguments_permission, request))


def _period(request: HttpRequest, using: str, state: State) -> Period:
    since, until = _moment(request, SINCE), _moment(request, UNTIL)
    if state.name not in TIMED and (since is not None or until is not None):
        raise IncorrectLookupParameters
    return Period(since, until, Database.of(using).current_time)


def _moment(request: HttpRequest, name: str) -> Moment | None:
    text = request.GET.get(name, "").strip()
    if not text:
        return None
    try:
        return read_moment(text)
    except ValueError:
        raise IncorrectLookupParameters from None
