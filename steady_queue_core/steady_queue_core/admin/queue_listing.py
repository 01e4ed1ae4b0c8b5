"""Listing of the queues."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from ..listings.counts import BoundedCount
from ..listings.keyset import Order
from ..listings.listing import Page, split_page
from ..models import Pause


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
