"""Rate limits: when the next jobs of each key may start."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse

from ..dialects.database import Database
from ..listings.keyset import is_storable
from ..listings.limits import ListedRate, duration_of, rate_in_words
from ..listings.listing import ModelListing
from ..models.rate import number
from ..timezones import from_microseconds, to_microseconds
from . import databases, texts
from .base import QueueAdmin
from .columns import attribute, column
from .detail import Fields, Section
from .filters import DatabaseFilter


class RateAdmin(QueueAdmin):
    """Keys whose jobs have started lately, or have slots. One without a row may start at once."""

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
        return (key, rate, waiting, free_slot)

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
            ("Slots taken", waiting(row)),
            ("Next free slot", free_slot(row)),
            ("Last start counts until", _moment(number(row.gate))),
            ("Slots put off by", texts.duration(duration_of(number(row.shift)))),
        ]
        sections: list[Section] = [Fields("Rate limit", fields)]
        return self.render_detail(request, row.key, "Rate limit", sections)


key = attribute("key", "key")


@column("rate")
def rate(row: Any) -> str:
    """Return the rate of the job that has asked last."""
    found = ListedRate(row, row.present).rate
    return "" if found is None else rate_in_words(found)


@column("slots taken")
def waiting(row: Any) -> str:
    """Return how many jobs wait for a slot, as far as nobody has cancelled them."""
    return f"{ListedRate(row, row.present).slots_taken:,}"


@column("next free slot")
def free_slot(row: Any) -> str:
    free_at = ListedRate(row, row.present).free_at
    return "now" if free_at is None else texts.moment(free_at)


def _moment(microseconds: int) -> str:
    instant: datetime | None = from_microseconds(microseconds)
    return "" if instant is None else texts.moment(instant)
