"""Semaphores and rate limits: the permits of each concurrency key, and when jobs may start."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from ..dialects import is_storable
from ..dialects.database import Database
from ..features.rates.shown import rate_in_words
from ..listings.counts import count_each
from ..listings.keyset import ModelListing
from ..listings.limits import ListedRate, duration_of
from ..listings.states import BLOCKED
from ..models import BlockedExecution
from ..models.rate import number
from ..models.semaphore import Permit
from ..timezones import from_microseconds, to_microseconds
from . import databases, texts
from .base import QueueAdmin
from .columns import attribute, column
from .detail import Fields, Section, Table
from .filters import DatabaseFilter

#: Maximum number of jobs on the page of a semaphore.
MOST_JOBS = 100


class KeyAdmin(QueueAdmin):
    """The pages of rows that have a key, which can be searched for."""

    list_filter = (DatabaseFilter,)
    search_fields = ("key",)
    search_help_text = "The full key."
    actions = None

    def listing(self, request: HttpRequest, search: str) -> ModelListing:
        rows = self.rows(request)
        if search:
            rows = rows.filter(pk=search) if is_storable(search) else rows.filter(pk="")
        return ModelListing(rows)


class SemaphoreAdmin(KeyAdmin):
    """Concurrency keys with permits in use. A key without a row has all its permits free."""

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


class RateAdmin(KeyAdmin):
    """Keys whose jobs have started lately, or have slots. One without a row may start at once."""

    def get_list_display(self, request: HttpRequest) -> Any:
        return (key, rate, slots_taken, free_slot)

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        present = Database.of(databases.requested(request)).current_time()
        for row in rows:
            row.present = to_microseconds(present)
        return rows

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.annotate_rows(request, [row])
        fields = [
            ("Key", texts.clean(row.key)),
            ("Rate", rate(row)),
            ("Slots taken", slots_taken(row)),
            ("Next free slot", free_slot(row)),
            ("Last start counts until", _moment(number(row.gate))),
            ("Slots put off by", texts.duration(duration_of(number(row.shift)))),
        ]
        sections: list[Section] = [Fields("Rate limit", fields)]
        return self.render_detail(request, row.key, "Rate limit", sections)


@column("rate")
def rate(row: Any) -> str:
    """Return the rate of the job that has asked last."""
    found = ListedRate(row, row.present).rate
    return "" if found is None else rate_in_words(found)


@column("slots taken")
def slots_taken(row: Any) -> str:
    """Return how many jobs wait for a slot, as far as nobody has cancelled them."""
    return f"{ListedRate(row, row.present).slots_taken:,}"


@column("next free slot")
def free_slot(row: Any) -> str:
    free_at = ListedRate(row, row.present).free_at
    return "now" if free_at is None else texts.moment(free_at)


def _moment(microseconds: int) -> str:
    instant: datetime | None = from_microseconds(microseconds)
    return "" if instant is None else texts.moment(instant)
