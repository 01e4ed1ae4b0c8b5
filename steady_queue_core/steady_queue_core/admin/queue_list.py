"""The list of queues: its pages, its columns, and the fields of the page of one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.html import format_html

from ..listings.counts import BoundedCount
from ..listings.keyset import Order
from ..listings.listing import Page, split_page
from ..models import Pause
from . import texts
from .columns import attribute, column
from .detail import Fields


@dataclass(frozen=True)
class QueueListing:
    """Queues by name. Only paused queues have a row."""

    queryset: QuerySet[Any]
    #: Sorted.
    names: list[str]

    def page(self, cursor: str, size: int) -> Page:
        start = Order(Pause, ("queue_name",)).parse(cursor)
        if start.key is None:
            names = self.names
        elif start.backwards:
            names = self.names[: bisect_left(self.names, start.key[0])][::-1]
        else:
            names = self.names[bisect_right(self.names, start.key[0]) :]
        keys, page = split_page([(each,) for each in names[: size + 1]], start, size)
        return page._replace(rows=[Pause(queue_name=each) for (each,) in keys])

    def count(self) -> BoundedCount:
        return BoundedCount(len(self.names))


name = attribute("queue", "queue_name")


@column("state")
def state(queue: Any) -> str:
    if not queue.paused:
        return "open"
    return format_html("<strong>{}</strong>", texts.dated("paused", queue.paused_since))


@column("ready")
def ready(queue: Any) -> str:
    return format_html('<a href="{}">{}</a>', queue.jobs_url, queue.count.text)


@column("oldest wait")
def oldest(queue: Any) -> str:
    return texts.between(queue.count.first, queue.present)


@column("shared fairly")
def fair(queue: Any) -> str:
    """Return the weight that keys of a fair queue have by default; nothing for other queues."""
    return "" if queue.weight is None else f"weight {queue.weight:g}"


def queue_fields(queue: Any) -> Fields:
    """Return the fields of the page of a queue."""
    return Fields(
        "Queue",
        [
            ("Name", texts.clean(queue.queue_name)),
            ("State", state(queue)),
            ("Shared fairly", fair(queue)),
            ("Paused since", texts.moment(queue.paused_since)),
            ("Ready jobs", ready(queue)),
            ("Oldest wait", oldest(queue)),
        ],
    )
