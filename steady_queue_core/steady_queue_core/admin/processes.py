"""Processes: supervisors and the processes that they have started, and those that have ended, but
not by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from ..dialects.database import Database
from ..listings.damage import suppress_damage
from ..listings.payloads import TOO_LONG
from ..listings.process_ends import ENDINGS, EndedJob, EndListing, ListedEnd
from ..listings.processes import (
    DEAD,
    LIVE,
    MOST_ENTRIES,
    ListedProcess,
    alive_threshold,
    as_tree,
    entries_of,
    is_too_long,
)
from ..models import ClaimedExecution, Job, Process, ProcessEnd
from . import databases, texts
from .base import QueueAdmin
from .columns import attribute, column
from .detail import Fields, Section, Table
from .filters import DatabaseFilter
from .page_links import PageLinks

#: Maximum numbers of jobs, and of details, on the page of a process.
MOST_JOBS, MOST_FIELDS = 100, 50


class ProcessAdmin(QueueAdmin):
    """Supervisors, each followed by the processes that it has started."""

    list_filter = (DatabaseFilter,)
    list_per_page = 200
    actions = None

    def get_list_display(self, request: HttpRequest) -> Any:
        return (process, state, host, serves, running, heartbeat, started)

    def see_also(self, request: HttpRequest) -> list[tuple[str, str]]:
        page: Any = self.admin_site._registry.get(ProcessEnd)
        if page is None or not page.has_view_permission(request):
            return []
        return [("Ended processes", page.url(request, "changelist"))]

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        using = databases.requested(request)
        claims = ClaimedExecution.objects.using(using).filter(process_id__in=[r.pk for r in rows])
        claims = self.visible_jobs(request).restrict(claims)
        held = dict(claims.values_list("process_id").annotate(Count("pk")).order_by())
        present, threshold = Database.of(using).current_time(), alive_threshold(using)
        for row in rows:
            row.present = present
            row.listed = ListedProcess(row, present, threshold, held.get(row.pk, 0))
        return as_tree(rows)

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.annotate_rows(request, [row])
        return self.render_detail(request, row, texts.name(row.name), self._sections(request, row))

    def _sections(self, request: HttpRequest, row: Any) -> list[Section]:
        claims = ClaimedExecution.objects.using(row._state.db).filter(process_id=row.pk)
        jobs = self.visible_jobs(request).restrict(claims).select_related("job").order_by("job_id")
        jobs = jobs.only("job__task_path", "queue_name", "created_at")[:MOST_JOBS]
        fields = [
            ("Kind", texts.clean(row.kind)),
            ("State", state(row)),
            ("Host", texts.clean(row.hostname)),
            ("Pid", row.pid),
            ("Started by process", supervisor_link(self, request, row)),
            ("Started", texts.moment(row.created_at)),
            ("Last heartbeat", heartbeat(row)),
        ]
        fields += _told(row)
        held = [
            (
                self.job_link(request, claim.job_id),
                texts.named(claim.job.task_path),
                texts.named(claim.queue_name),
                texts.between(claim.created_at, row.present),
            )
            for claim in jobs
        ]
        headings = ("Job", "Task", "Queue", "For")
        return [
            Fields("Process", fields),
            Table("Claimed jobs", headings, held, "" if held else "None."),
        ]


def _told(row: Any) -> Iterator[tuple[str, str]]:
    """Yield what a process tells of itself, and what is left out of it."""
    known = islice(row.listed.known.items(), MOST_FIELDS)
    yield from ((texts.name(key), texts.clean(value)) for key, value in known)
    if len(row.listed.known) > MOST_FIELDS:
        yield "Left out", f"The first {MOST_FIELDS} details of {len(row.listed.known):,} are shown."
    if (queues := entries_of(row.listed.known)) and len(queues) > MOST_ENTRIES:
        words = f"The first {MOST_ENTRIES:,} queues of {len(queues):,} are looked at."
        yield "Left out", words
    if is_too_long(row):
        yield "Details", TOO_LONG.format(len(row.metadata))


def supervisor_link(page: QueueAdmin, request: HttpRequest, row: Any) -> str:
    """Return the supervisor of a process, or of one that has ended, with a link to its page as long
    as it is registered, or to that of its end."""
    number = row.supervisor_id
    if number is None:
        return ""
    links = PageLinks(page, request)
    of = {Process: {"pk": number}, ProcessEnd: {"process_id": number}}
    for model, filters in of.items():
        with suppress_damage():
            found = page.rows(request, model).filter(**filters).only("name").first()
            if found is not None and (address := links.to_page(model, str(found.pk))):
                return links.link(address, f"{texts.name(found.name)} (process {number})")
    return str(number)


@column("process")
def process(row: Any) -> str:
    return texts.named(("└ " if row.nested else "") + row.name)


@column("state")
def state(row: Any) -> str:
    found = row.listed.state
    return LIVE if found == LIVE else format_html("<strong>{}</strong>", found)


@column("pid and host")
def host(row: Any) -> str:
    return texts.named(f"{row.pid} on {row.hostname}")


@column("serves")
def serves(row: Any) -> str:
    if text := row.listed.serves_text:
        return texts.named(text)
    return TOO_LONG.format(len(row.metadata)) if is_too_long(row) else ""


running = attribute("jobs", "listed.running", int)


@column("last heartbeat")
def heartbeat(row: Any) -> str:
    if row.listed.state == DEAD:
        return ""
    return texts.dated(f"{texts.duration(row.listed.silence)} ago", row.last_heartbeat_at)


started = attribute("started", "created_at", texts.moment)


class ProcessEndAdmin(QueueAdmin):
    """When and why processes have ended that did not end by themselves, and what they held."""

    list_filter = (DatabaseFilter,)
    actions = None

    def listing(self, request: HttpRequest, search: str) -> EndListing:
        return EndListing(self.rows(request))

    def get_list_display(self, request: HttpRequest) -> Any:
        return (ended_process, ended, why, host, served, held, lost)

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        end = ListedEnd(row)
        fields = [
            ("Kind", texts.clean(row.kind)),
            ("Ended", texts.moment(row.ended_at)),
            ("Why", texts.clean(end.why or end.reason)),
            ("Exit status", end.details.get("exit_code")),
            ("Host", texts.clean(row.hostname)),
            ("Pid", row.pid),
            ("Queues", texts.clean(", ".join(end.queues))),
            ("Threads", texts.clean(end.details.get("threads") or "")),
            ("Version", texts.clean(end.details.get("version") or "")),
            ("Process id", row.process_id),
            ("Started by process", supervisor_link(self, request, row)),
            ("Started", texts.moment(row.started_at)),
            ("Last heartbeat", texts.moment(row.last_heartbeat_at)),
            ("Recovered by", texts.clean(end.details.get("recovered_by") or "")),
            ("Claimed jobs", f"{row.held:,}"),
            ("Attempts lost", f"{row.lost:,}"),
            ("What became of the jobs", end.fate),
        ]
        sections: list[Section] = [Fields("Ended process", fields), self._jobs(request, end)]
        return self.render_detail(request, row, texts.name(row.name), sections)

    def _jobs(self, request: HttpRequest, end: ListedEnd) -> Table:
        """Return those of the named jobs that the user may see; others may be gone meanwhile."""
        visible = self.visible_jobs(request)
        ids = [each.job_id for each in end.jobs]
        there = set(self.rows(request, Job).filter(pk__in=ids).values_list("pk", flat=True))
        shown = [each for each in end.jobs if visible.is_unrestricted or each.job_id in there]
        rows = [self._row(request, each, is_there=each.job_id in there) for each in shown]
        more = end.row.held - len(rows)
        note = f"{more:,} more are not named here." if rows and more > 0 else ""
        headings = ("Job", "Task", "Queue", "Attempt", "What became of it")
        return Table("Claimed jobs", headings, rows, note if rows else "None is named.")

    def _row(self, request: HttpRequest, job: EndedJob, *, is_there: bool) -> tuple[Any, ...]:
        return (
            self.job_link(request, job.job_id) if is_there else f"#{job.job_id} (deleted)",
            texts.named(job.task),
            texts.named(job.queue),
            "lost" if job.lost else "",
            ENDINGS.get(job.ending, texts.name(job.ending)),
        )


ended_process = attribute("process", "name")
ended = attribute("ended", "ended_at", texts.moment)


@column("why")
def why(row: Any) -> str:
    return texts.named(ListedEnd(row).reason)


@column("served")
def served(row: Any) -> str:
    return texts.named(", ".join(ListedEnd(row).queues))


held = attribute("jobs", "held", "{:,}".format)
lost = attribute("attempts lost", "lost", "{:,}".format)
