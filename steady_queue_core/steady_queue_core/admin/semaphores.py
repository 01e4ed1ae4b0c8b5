"""Semaphores: the permits of each concurrency key."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from ..listings.counts import count_each
from ..listings.keyset import is_storable
from ..listings.listing import ModelListing
from ..listings.states import BLOCKED
from ..models import BlockedExecution
from ..models.semaphore import Permit
from . import databases, texts
from .base import QueueAdmin
from .columns import attribute, column
from .detail import Fields, Section, Table
from .filters import DatabaseFilter

#: Maximum number of jobs on the page of a semaphore.
MOST_JOBS = 100


class SemaphoreAdmin(QueueAdmin):
    """Concurrency keys with permits in use. A key without a row has all its permits free."""

    list_filter = (DatabaseFilter,)
    search_fields = ("key",)
    search_help_text = "The full key."
    actions = None

    def listing(self, request: HttpRequest, search: str) -> ModelListing:
        rows = self.rows(request)
        if search:
            rows = rows.filter(pk=search) if is_storable(search) else rows.filter(pk="")
        return ModelListing(rows)

    def get_list_display(self, request: HttpRequest) -> Any:
        return (key, in_use, waiting)

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        using = databases.requested(request)
        blocked = BlockedExecution.objects.using(using).order_by()
        waiting = [blocked.filter(concurrency_key=row.pk) for row in rows]
        counts = count_each(using, waiting, visible=self.visible_jobs(request))
        for row, count in zip(rows, counts, strict=True):
            row.count = count
            row.jobs_url = self.jobs_url(request, state=BLOCKED.name, key=row.pk)
        return rows

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.annotate_rows(request, [row])
        fields = [
            ("Key", texts.clean(row.key)),
            ("In use", in_use(row)),
            ("Free", max(0, row.value)),
            ("Limit", row.limit),
            ("Waiting jobs", waiting(row)),
        ]
        sections: list[Section] = [Fields("Semaphore", fields), self._holders(request, row)]
        return self.render_detail(request, row.key, "Semaphore", sections)

    def _holders(self, request: HttpRequest, row: Any) -> Table:
        permits = Permit.objects.using(row._state.db).filter(key=row.key)
        jobs = self.visible_jobs(request).restrict(permits).select_related("job").order_by("job_id")
        held = [
            (self.job_link(request, permit.job_id), texts.named(permit.job.task_path))
            for permit in jobs.only("job__task_path")[:MOST_JOBS]
        ]
        note = "" if held else "None."
        return Table("Jobs with a permit", ("Job", "Task"), held, note)


key = attribute("key", "key")


@column("in use")
def in_use(row: Any) -> str:
    return f"{row.limit - row.value} of {row.limit}"


@column("waiting")
def waiting(row: Any) -> str:
    return format_html('<a href="{}">{}</a>', row.jobs_url, row.count.text)
