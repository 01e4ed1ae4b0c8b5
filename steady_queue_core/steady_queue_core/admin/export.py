"""The export of a list of jobs: CSV, or JSON with one object a line, written while it is read."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from io import StringIO
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ObjectDoesNotExist
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.http import urlencode

from ..dialects import portable
from ..listings.damage import DAMAGED, ERRORS, read_each
from ..listings.job_listing import JobListing
from ..listings.job_rows import read_jobs, state_of
from ..listings.payloads import shown_call
from ..listings.states import ALL
from ..models import Job
from . import databases, texts
from .actions import log_act
from .job_lists import JobList
from .job_search import ARGUMENTS, COMPARED, SINCE, UNTIL

#: After so many jobs, or seconds, an export is cut.
MOST, TIME_LIMIT = 100_000, 60.0
#: Jobs that are read at once; with their arguments, which may be large.
PART, PART_WITH_ARGUMENTS = 500, 20
#: Lines that are made in one turn of a thread, under ASGI.
LINES = 100
#: Characters of a value.
MOST_SHOWN = 2_000
#: What a spreadsheet takes for the beginning of a formula, or of a cell with one if it splits lines
#: at another separator than ours.
FORMULA = re.compile(r"(^|[;,|\t\r\n])(?=[\s\"']*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n])")
TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}

#: The columns of every export, and those that states add.
COLUMNS: dict[str, Callable[[Any], Any]] = {
    "id": lambda job: job.pk,
    "task": lambda job: job.task_path,
    "queue": lambda job: job.queue_name,
    "priority": lambda job: job.priority,
    "state": lambda job: state_of(job).name,
    "attempts": lambda job: job.attempts,
    "max_attempts": lambda job: abs(job.max_attempts),
    "enqueued_at": lambda job: job.enqueued_at,
    "started_at": lambda job: job.started_at,
    "finished_at": lambda job: job.finished_at,
}
OF_STATES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "ready": {"ready_at": lambda job: job.readyexecution.created_at},
    "scheduled": {"due_at": lambda job: job.scheduledexecution.due_at},
    "blocked": {
        "blocked_at": lambda job: job.blockedexecution.created_at,
        "concurrency_key": lambda job: job.blockedexecution.concurrency_key,
    },
    "waiting": {
        "waiting_at": lambda job: job.waitingexecution.created_at,
        "members": lambda job: job.waitingexecution.width,
    },
    "running": {
        "claimed_at": lambda job: job.claimedexecution.created_at,
        "process": lambda job: job.claimedexecution.process,
        "progress": lambda job: job.progress,
    },
    "failed": {
        "error": lambda job: job.failedexecution.exception_class,
        "message": lambda job: job.message,
        "error_group": lambda job: job.failedexecution.fingerprint,
    },
}


def export(page: Any, request: HttpRequest) -> StreamingHttpResponse:
    """Return the jobs of a list that the user may see. Raises ``Http404`` for other forms."""
    kind = request.GET.get("form", "")
    if kind not in TYPES:
        raise Http404("There is no such form of an export.")
    listing = page.listing(request, request.GET.get("q", ""))
    with_arguments = request.GET.get(WITH_ARGUMENTS) == "yes"
    rows = Rows(page, request, listing, with_arguments=with_arguments)
    _add_history(request, f"Exported as {kind}: {rows.jobs.words}")
    lines = as_csv(rows) if kind == "csv" else as_json_lines(rows)
    content = in_turns(lines) if isinstance(request, ASGIRequest) else lines
    response = StreamingHttpResponse(content, content_type=TYPES[kind])
    name = "-".join(("jobs", listing.state.name)).rstrip("-")
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def export_links(page: Any, request: HttpRequest) -> list[tuple[str, str]]:
    """Return labels and URLs of the exports of a list."""
    given = {name: request.GET[name] for name in LINKED if request.GET.get(name)}
    address = page.url(request, "export").partition("?")[0]
    links = [("Export as CSV", {"form": "csv"}), ("Export as JSON lines", {"form": "jsonl"})]
    if page.is_permitted(request, "view_arguments"):
        form = {"form": "jsonl", WITH_ARGUMENTS: "yes"}
        links.append(("Export as JSON lines with arguments", form))
    return [(label, f"{address}?{urlencode(given | form)}") for label, form in links]


#: What a list has in its address that an export heeds, beside the state and the search.
FILTERS = (*COMPARED, ARGUMENTS, SINCE, UNTIL, databases.PARAMETER)
LINKED = ("state", "q", *FILTERS)
#: The parameter of an export that has the arguments, too.
WITH_ARGUMENTS = "with_arguments"


class Rows:
    """The jobs of a list, with the values of their columns, up to a limit."""

    def __init__(
        self, page: Any, request: HttpRequest, listing: JobListing, *, with_arguments: bool
    ) -> None:
        self.page, self.request, self.listing = page, request, listing
        self.with_arguments = with_arguments and page.is_permitted(request, "view_arguments")
        self.jobs = JobList.of(listing)
        self.columns = COLUMNS | OF_STATES.get(listing.state.name, {})
        if listing.state is not ALL:
            # Of such a list only the rows of its own state are read along.
            self.columns["state"] = lambda job: listing.state.name
        #: How many were read, and why the rest was not.
        self.number, self.cut = 0, ""

    @property
    def headings(self) -> list[str]:
        return [*self.columns, *(["arguments"] if self.with_arguments else [])]

    def __iter__(self) -> Iterator[list[Any]]:
        end = time.monotonic() + TIME_LIMIT
        size = PART_WITH_ARGUMENTS if self.with_arguments else PART
        try:
            for ids, _ in self.jobs.among(self.listing).parts("", size):
                for row in self._read(ids):
                    if self.number >= MOST:
                        self.cut = f"Cut after {self.number:,} jobs."
                        return
                    self.number += 1
                    yield row
                if time.monotonic() > end:
                    self.cut = f"Cut after {TIME_LIMIT:g} seconds and {self.number:,} jobs."
                    return
        finally:
            user = self.request.user.get_username()
            log_act(user, self.jobs.words, f"Exported {self.number:,} jobs")

    def _read(self, ids: Sequence[int]) -> Iterator[list[Any]]:
        visible = self.listing.visible.jobs
        jobs = read_jobs(visible, self.listing.state, ids)
        permitted = [job for job in jobs if self.page.has_view_permission(self.request, job)]
        calls = self._calls(permitted) if self.with_arguments else {}
        for job in permitted:
            row = [_value(column, job) for column in self.columns.values()]
            yield [*row, calls.get(job.pk, "")] if self.with_arguments else row

    def _calls(self, jobs: Iterable[Any]) -> dict[int, str]:
        may = self.page.has_view_arguments_permission
        ids = [job.pk for job in jobs if may(self.request, job)]
        rows = self.listing.visible.jobs.select_related(None)
        found = read_each(rows.defer("errors", "return_value"), ids)
        return {pk: _call(job) for pk, job in found.items() if job is not None}


async def in_turns(lines: Generator[str, None, None]) -> AsyncGenerator[str, None]:
    """Yield lines that are made by synchronous code, some at a time. Of what is not asynchronous
    Django would collect all before it sends the first."""
    take = sync_to_async(lambda: "".join(islice(lines, LINES)))
    try:
        while part := await take():
            yield part
    finally:
        await sync_to_async(lines.close)()


def as_csv(rows: Rows) -> Generator[str, None, None]:
    """Yield the lines of a CSV file, in which no cell is a formula."""
    yield _csv_line(rows.headings)
    for row in rows:
        yield _csv_line([_cell(each) for each in row])
    if rows.cut:
        yield _csv_line([rows.cut])


def as_json_lines(rows: Rows) -> Generator[str, None, None]:
    """Yield one JSON object a line."""
    headings = rows.headings
    for row in rows:
        yield json.dumps(dict(zip(headings, row, strict=True))) + "\n"
    if rows.cut:
        yield json.dumps({"cut": rows.cut}) + "\n"


def _csv_line(row: Sequence[Any]) -> str:
    text = StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


def _value(column: Callable[[Any], Any], job: Any) -> Any:
    try:
        value = column(job)
    except ObjectDoesNotExist:
        return ""  # It has left the state.
    except ERRORS:
        return DAMAGED
    if value is None or type(value) is int:
        return value
    if isinstance(value, datetime):
        return portable.aware(value).isoformat()
    return texts.clean(value, MOST_SHOWN)


def _call(job: Any) -> str:
    try:
        call = shown_call(job)
    except (TypeError, AttributeError):
        return DAMAGED  # SQLite lets a row hold something other than text.
    return texts.clean(", ".join(call.lines()) if call.is_readable else call.note, MOST_SHOWN)


def _add_history(request: HttpRequest, message: str) -> None:
    user_id: Any = request.user.pk
    LogEntry.objects.create(
        user_id=user_id,
        content_type_id=ContentType.objects.get_for_model(Job).pk,
        object_repr="jobs",
        action_flag=CHANGE,
        change_message=texts.line(message),
    )
