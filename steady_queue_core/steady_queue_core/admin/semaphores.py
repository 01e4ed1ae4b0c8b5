"""Semaphores: the permits of each concurrency key."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from ..models import BlockedExecution
from ..models.semaphore import Permit
from . import databases, texts
from .base import QueueAdmin
from .corrupt_rows import column
from .counts import tallies
from .detail import Facts, Section, Table
from .filters import DatabaseFilter
from .keyset import is_storable
from .listing import ModelListing
from .states import BLOCKED

#: Jobs with a permit that a page names.
MOST_JOBS = 100


class SemaphoreAdmin(QueueAdmin):
    """Keys whose permits are in use. A key without a row has all of them."""

    list_filter = (DatabaseFilter,)
    search_fields = ("key",)
    search_help_text = "The whole key."
    actions = None

    def listing(self, request: HttpRequest, search: str) -> ModelListing:
        rows = self.rows(request)
        if search:
            rows = rows.filter(pk=search) if is_storable(search) else rows.filter(pk="")
        return ModelListing(rows)

    def get_list_display(self, request: HttpRequest) -> Any:
        return (key, in_use, waiting)

    def dress(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        using = databases.chosen(request)
        blocked = BlockedExecution.objects.using(using).order_by()
        waiting = [blocked.filter(concurrency_key=row.pk) for row in rows]
        counts = tallies(using, waiting, scope=self.scope(request))
        for row, tally in zip(rows, counts, strict=True):
            row.tally = tally
            row.jobs_url = self.jobs_url(request, state=BLOCKED.name, key=row.pk)
        return rows

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.dress(request, [row])
        facts = [
            ("Key", texts.clean(row.key)),
            ("In use", in_use(row)),
            ("Left", row.value),
            ("Limit", row.limit),
            ("Jobs that wait", waiting(row)),
        ]
        sections: list[Section] = [Facts("Semaphore", facts), self._holders(request, row)]
        return self.page_of(request, row.key, "Semaphore", sections)

    def _holders(self, request: HttpRequest, row: Any) -> Table:
        permits = Permit.objects.using(row._state.db).filter(key=row.key)
        jobs = self.scope(request).only(permits).select_related("job").order_by("job_id")
        held = [
            (self.job_link(request, permit.job_id), texts.name(permit.job.task_path))
            for permit in jobs.only("job__task_path")[:MOST_JOBS]
        ]
        note = "" if held else "None."
        return Table("Jobs that have a permit", ("Job", "Task"), held, note)


@column("key")
def key(row: Any) -> str:
    return texts.name(row.key)


@column("in use")
def in_use(row: Any) -> str:
    return f"{row.limit - row.value} of {row.limit}"


@column("waiting")
def waiting(row: Any) -> str:
    return format_html('<a href="{}">{}</a>', row.jobs_url, row.tally.text)
