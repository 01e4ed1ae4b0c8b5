"""Ended processes: those that were killed, went silent or were replaced."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from ..listings.process_ends import ENDINGS, EndedJob, EndListing, ListedEnd
from ..models import Job
from . import texts
from .base import QueueAdmin
from .columns import attribute, column
from .detail import Fields, Section, Table
from .filters import DatabaseFilter
from .processes import host, supervisor_link


class ProcessEndAdmin(QueueAdmin):
    """When and why processes have ended that did not end by themselves, and what they held."""

    list_filter = (DatabaseFilter,)
    actions = None

    def listing(self, request: HttpRequest, search: str) -> EndListing:
        return EndListing(self.rows(request))

    def get_list_display(self, request: HttpRequest) -> Any:
        return (process, ended, why, host, serves, held, lost)

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


process = attribute("process", "name")
ended = attribute("ended", "ended_at", texts.moment)


@column("why")
def why(row: Any) -> str:
    return texts.named(ListedEnd(row).reason)


@column("served")
def serves(row: Any) -> str:
    return texts.named(", ".join(ListedEnd(row).queues))


held = attribute("jobs", "held", "{:,}".format)
lost = attribute("attempts lost", "lost", "{:,}".format)
