"""Jobs: lists by state, the page of one, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.options import IncorrectLookupParameters
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from ..models import Job, Process
from ..models.job import parse_job_id
from . import databases, texts
from .actions import Done, record, tell
from .base import QueueAdmin
from .change_list import KeysetChangeList
from .counts import Tally
from .filters import DatabaseFilter, KeyFilter, QueueFilter, StateFilter, TaskFilter
from .job_actions import ACTS, Act
from .job_columns import OF_STATES
from .job_listing import LOOKED_AT, JobListing
from .job_page import row_of, sections_of
from .job_rows import RELATED, read_briefly, state_of
from .keyset import is_storable
from .states import ALL, STATES, State, tallies_of_states

#: Jobs that are counted before it is asked whether to discard them, at most.
COUNTED = 50_000


class JobChangeList(KeysetChangeList):
    """The list of a state, with tabs for the others."""

    listing: JobListing

    @property
    def tabs(self) -> list[tuple[str, Tally, str | None]]:
        """Label, count and address of each state; no address for the one that is shown."""
        return [
            (
                state.label,
                self.listing.counts[name],
                None
                if state is self.listing.state
                else self.get_query_string({"state": name or None}),
            )
            for name, state in STATES.items()
        ]


class JobAdmin(QueueAdmin):
    """Jobs, which run and fail, and are retried and discarded; never edited."""

    list_filter = (StateFilter, DatabaseFilter, QueueFilter, TaskFilter, KeyFilter)
    search_fields = ("id", "task_path")
    search_help_text = "The id of a job, or a task: its name, or its whole path."
    actions = ("retry", "run_now", "discard")

    # --- lists ---

    def get_changelist(self, request: HttpRequest, **named: Any) -> type[KeysetChangeList]:
        return JobChangeList

    def get_list_display(self, request: HttpRequest) -> Any:
        return OF_STATES[_state(request).name]

    def list_title(self, request: HttpRequest) -> str:
        state = _state(request)
        return f"{state.label} jobs" if state.name else "Jobs"

    def listing(self, request: HttpRequest, search: str) -> JobListing:
        scope = self.scope(request)
        given = {
            name: request.GET[name] for name in ("queue", "task", "key") if request.GET.get(name)
        }
        if not all(map(is_storable, (*given.values(), search))):
            raise IncorrectLookupParameters
        counts = tallies_of_states(scope.jobs.db, scope)
        return JobListing(scope, _state(request), given, search.strip(), counts)

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        """Find a job by its id, for forms that complete what is typed: no index serves more."""
        job_id = parse_job_id(search_term.strip())
        found = queryset.filter(pk=job_id) if job_id is not None else queryset.none()
        return found.order_by("pk"), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "POST":
            given = request.POST.copy()
            ids = [
                each
                for each in given.getlist(helpers.ACTION_CHECKBOX_NAME)
                if parse_job_id(each) is not None
            ]
            given.setlist(helpers.ACTION_CHECKBOX_NAME, ids)
            request.POST = given  # type: ignore[assignment]  # The same class, not yet immutable.
        return super().changelist_view(request, extra_context)

    # --- what a user may do ---

    def has_retry_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "retry_job")

    def has_run_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "run_job")

    def has_discard_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "discard_job")

    def has_view_arguments_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "view_arguments")

    def permitted(self, request: HttpRequest, act: Act, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` whose jobs the user may see, and may act on."""
        jobs = read_briefly(self.rows(request), ids)
        return [job.pk for job in jobs if self.may_act(request, act.name, job)]

    # --- actions on lists; each is offered where the state allows it and the user may ---

    def has_retry_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, ACTS["retry"])

    def has_run_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, ACTS["run"])

    def has_discard_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, ACTS["discard"])

    @admin.action(permissions=["retry_listed"], description="Retry selected jobs")
    def retry(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._act_on_list(request, ACTS["retry"])

    @admin.action(permissions=["run_listed"], description="Run selected jobs now")
    def run_now(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._act_on_list(request, ACTS["run"])

    @admin.action(permissions=["discard_listed"], description="Discard selected jobs")
    def discard(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._act_on_list(request, ACTS["discard"])

    def _may_here(self, request: HttpRequest, act: Act) -> bool:
        return act.name in _state(request).actions and self.may_act(request, act.name)

    def _act_on_list(self, request: HttpRequest, act: Act) -> HttpResponse | None:
        state, chosen = _state(request), self.chosen(request)
        listing = cast(JobChangeList, self.get_changelist_instance(request)).listing
        if (act.destroys or chosen is None) and not self.confirmed(request):
            tally = _count(listing) if chosen is None else Tally(len(chosen))
            question = f"{act.label} {tally.text} {state.name} jobs?{act.warning}"
            return self.confirmation(request, question, act.label, request.get_full_path())
        permitted = partial(self.permitted, request, act)
        write = partial(self._record, request, act)
        if chosen is None:
            done = act.on_listed(listing, permitted, write)
            which = f"all selected {state.name} jobs"
        else:
            ids = [int(each) for each in chosen]
            done = act.on_ids(listing.using, ids, permitted, write)
            which = f"jobs {', '.join(chosen)}"
        self._tell(request, act, done)
        given = "".join(f", {name} {value}" for name, value in listing.given.items())
        search = f", search {listing.search}" if listing.search else ""
        tell(request, f"{which}{given}{search}", _past(act, done))
        return None

    def _record(self, request: HttpRequest, act: Act, ids: Sequence[int]) -> None:
        record(request, Job, act.past, {each: f"#{each}" for each in ids}, act.flag)

    def _tell(self, request: HttpRequest, act: Act, done: Done) -> None:
        self.message_user(request, f"{_past(act, done)}.", messages.SUCCESS)
        if done.changed < done.asked:
            left = f"{done.asked - done.changed:,} had moved on meanwhile and were left alone."
            self.message_user(request, left, messages.WARNING)
        if done.stopped:
            more = f"There may be more: {done.stopped}. Do it again for the rest."
            self.message_user(request, more, messages.WARNING)

    # --- the page of one job, and its buttons ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.post_path(name, name, partial(self._act_on_one, act)) for name, act in ACTS.items()
        ]
        return [*own, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        rows = self.rows(request).select_related(None).select_related(*RELATED)
        job_id = parse_job_id(object_id)
        return None if job_id is None else rows.filter(pk=job_id).first()

    def get_object_to_act_on(self, request: HttpRequest, object_id: str) -> Any:
        job_id = parse_job_id(object_id)
        if job_id is None:
            return None
        return next(iter(read_briefly(self.rows(request), [job_id])), None)

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        job, state = row, state_of(row)
        with_arguments = self.has_view_arguments_permission(request, job)
        process = self._process_of(job, state)
        sections = sections_of(job, state, process, with_arguments=with_arguments)
        buttons = [
            (act.label, self.url(request, name, job.pk))
            for name, act in ACTS.items()
            if name in state.actions and self.may_act(request, name, job)
        ]
        history = self.url(request, "history", job.pk)
        return self.page_of(request, job, f"Job #{job.pk}", sections, buttons, history)

    def _act_on_one(self, act: Act, request: HttpRequest, row: Any) -> HttpResponse:
        job, page = f"job #{row.pk}", self.url(request, "change", row.pk)
        if act.destroys and not self.confirmed(request):
            question = f"{act.label} {job}? It cannot be brought back."
            return self.confirmation(request, question, act.label, page)
        # That the user may, is known.
        write = partial(self._record, request, act)
        done = act.on_ids(databases.chosen(request), [row.pk], lambda ids: ids, write)
        if done.stopped:
            self.message_user(request, f"{act.label} {job}: {done.stopped}.", messages.ERROR)
        elif done.changed:
            self.message_user(request, f"{act.past} {job}.", messages.SUCCESS)
            tell(request, f"#{row.pk}", act.past)
        else:
            moved = f"J{job[1:]} has moved on meanwhile: it cannot be {act.past.lower()} now."
            self.message_user(request, moved, messages.WARNING)
        if act.destroys and done.changed:
            return HttpResponseRedirect(self.url(request, "changelist"))
        return HttpResponseRedirect(page)

    def _process_of(self, job: Any, state: State) -> str:
        row = row_of(job, state)
        process_id = getattr(row, "process_id", None)
        if process_id is None:
            return ""
        process = Process.objects.using(job._state.db).filter(pk=process_id).first()
        return texts.clean(process or f"process-{process_id}, which is not registered")


def _state(request: HttpRequest) -> State:
    return STATES.get(request.GET.get("state", ""), ALL)


def _past(act: Act, done: Done) -> str:
    return f"{act.past} {done.changed:,} job{'' if done.changed == 1 else 's'}"


def _count(listing: JobListing) -> Tally:
    """Count the jobs of a list; where no index serves its filters, by looking at a bounded number
    of jobs."""
    known = listing.tally()
    if known is not None:
        return known
    found = looked_at = 0
    for batch in listing.batches():
        found += len(batch)
        looked_at += LOOKED_AT
        if looked_at >= COUNTED:
            return Tally(found, exact=False)
    return Tally(found)
