"""The options by which subcommands choose jobs."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db.models import Q

from ..dialects import is_storable
from ..dialects.database import Database
from ..fingerprint import is_fingerprint
from ..listings.argument_search import ArgumentSearch
from ..listings.job_listing import JobListing
from ..listings.period import Moment, Period, read_moment
from ..listings.states import ALL, FAILED, STATES, State
from ..listings.visibility import VisibleJobs
from ..models import Job
from .exit_codes import WRONG_USAGE, Refusal
from .formats import job_id_option

#: The options that narrow the choice.
NAMES = (
    "state", "queue", "task", "batch", "arguments", "since", "until", "error", "error_group",
)  # fmt: skip


def add_filters(parser: ArgumentParser, states: tuple[str, ...] = ()) -> None:
    """Add the options. ``states`` are the ones to choose from: by default all."""
    found = states or tuple(name for name in STATES if name)
    parser.add_argument("--state", choices=found, help="jobs in this state")
    parser.add_argument("--queue", type=name_option, help="jobs of this queue")
    parser.add_argument("--task", type=name_option, help="jobs of the task with this path")
    parser.add_argument("--batch", type=job_id_option, metavar="ID", help="jobs of this batch")
    parser.add_argument(
        "--arguments",
        type=text_option,
        metavar="TEXT",
        help="jobs with this in their arguments, as show tells them: without secrets",
    )
    parser.add_argument(
        "--since",
        type=moment_option,
        metavar="TIME",
        help="jobs that were enqueued since then, or, with --state failed and finished, that have "
        "ended since: 90s, 10m, 24h or 7d ago, or a point in time such as 2026-01-31T12:00",
    )
    parser.add_argument("--until", type=moment_option, metavar="TIME", help="... before then")
    if FAILED.name in found:
        _add_error(parser)


def _add_error(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--error",
        type=name_option,
        metavar="CLASS",
        help="failed jobs with this exception: ValueError",
    )
    parser.add_argument(
        "--error-group",
        type=_fingerprint,
        metavar="GROUP",
        help="failed jobs of this group of errors, see the subcommand errors",
    )


def failure_option(options: Mapping[str, Any]) -> str | None:
    """Return the option that is given and is for failed jobs alone. Raises ``Refusal`` if another
    state is."""
    given = (name for name in ("error", "error_group") if options.get(name) is not None)
    name = next(given, None)
    if name is None:
        return None
    option, state = f"--{name.replace('_', '-')}", options.get("state")
    if state not in (None, FAILED.name):
        raise Refusal(f"{option} is for failed jobs, not for --state {state}.", WRONG_USAGE)
    return option


def is_narrowed(options: Mapping[str, Any]) -> bool:
    """Whether any of the options is given."""
    return any(options.get(name) is not None for name in NAMES)


def listing_of(options: Mapping[str, Any], using: str, state: State | None = None) -> JobListing:
    """Return the jobs of a database that the options choose. Raises ``Refusal``."""
    state = state or _state(options)
    period = Period(options.get("since"), options.get("until"), Database.of(using).current_time)
    also = Q()
    if (batch := options.get("batch")) is not None:
        also &= Q(membership__batch_id=batch)
    if (error := options.get("error")) is not None:
        same, ends = "failedexecution__exception_class", f".{error}"
        also &= Q(**{same: error}) | Q(**{f"{same}__endswith": ends})
    columns = {"queue": "queue", "task": "task", "error_group": "error"}
    given = {
        parameter: options[name]
        for name, parameter in columns.items()
        if options.get(name) is not None
    }
    arguments = options.get("arguments")
    return JobListing(
        VisibleJobs(Job.objects.using(using)),
        state,
        given,
        options.get("search") or "",
        None if arguments is None else ArgumentSearch(arguments),
        period,
        also=also,
    )


def _state(options: Mapping[str, Any]) -> State:
    if failure_option(options) is not None:
        return FAILED
    name = options.get("state")
    return ALL if name is None else STATES[name]


def moment_option(text: str) -> Moment:
    """Read a point in time, or how long ago it is. Without a zone, it is in that of Django."""
    try:
        return read_moment(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def future_option(text: str) -> datetime:
    """Read a point in time. Without a zone, it is in that of Django."""
    with suppress(ValueError):
        found = read_moment(text)
        if isinstance(found, datetime):
            return found
    raise ArgumentTypeError(f"{text!r} is not a point in time such as 2026-01-31T12:00")


def _fingerprint(text: str) -> str:
    if not is_fingerprint(text):
        raise ArgumentTypeError(
            f"{text!r} is no group of errors: a group has 16 hexadecimal digits, which the "
            "subcommand errors shows"
        )
    return text


def text_option(text: str) -> str:
    """Read a text to search for."""
    if not text.strip() or not is_storable(text):
        raise ArgumentTypeError(f"{text!r} is no text to search for")
    return text.strip()


def name_option(text: str) -> str:
    """Read the name of a queue or a task."""
    if not is_storable(text):
        raise ArgumentTypeError(f"{text!r} contains characters that no name has")
    return text
