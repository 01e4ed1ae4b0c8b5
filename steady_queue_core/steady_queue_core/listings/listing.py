"""Listings: pages of rows and their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from django.db.models import QuerySet

from .counts import BoundedCount, count_each
from .damage import read_in_order
from .keyset import Cursor, Order


class Page(NamedTuple):
    """Some rows of a list, and the cursors of the pages before and after."""

    rows: list[Any]
    previous: Cursor | None = None
    following: Cursor | None = None
    #: Whether the page is not full because more rows have yet to be examined.
    unfinished: bool = False
    #: Number of rows that cannot be shown.
    damaged: int = 0


class Listing(Protocol):
    """The rows selected by the filters and the search of a list."""

    @property
    def queryset(self) -> QuerySet[Any]:
        """All rows, for actions that take a queryset."""

    def page(self, cursor: str, size: int) -> Page:
        """Return the page at ``cursor``, as it appears in the URL."""

    def count(self) -> BoundedCount | None:
        """Return the number of rows, or ``None`` if counting takes too long."""


def split_page(keys: list[Any], cursor: Cursor, size: int) -> tuple[list[Any], Page]:
    """Return the keys of a page in display order, and the page without its rows.

    ``keys`` are those from ``cursor`` on: one more than ``size`` if the list goes on.
    """
    more, shown = len(keys) > size, keys[:size]
    if cursor.backwards:
        shown.reverse()
    ahead, behind = (cursor.key is not None, more) if cursor.backwards else (more, cursor.key)
    previous = Cursor(shown[0], backwards=True) if shown and behind else None
    following = Cursor(shown[-1]) if shown and ahead else None
    return shown, Page([], previous, following)


@dataclass(frozen=True)
class ModelListing:
    """The rows of a table in the order of its primary key."""

    queryset: QuerySet[Any]

    @property
    def order(self) -> Order:
        return Order(self.queryset.model, (self.queryset.model._meta.pk.attname,))

    def page(self, cursor: str, size: int) -> Page:
        start = self.order.parse(cursor)
        keys, page = split_page(self.order.keys(self.queryset, start, size + 1), start, size)
        rows, damaged = read_in_order(self.queryset, [key for (key,) in keys])
        return page._replace(rows=rows, damaged=damaged)

    def count(self) -> BoundedCount:
        [count] = count_each(self.queryset.db, [self.queryset.order_by()])
        return count
