"""What a list shows: a page of rows, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from django.db.models import QuerySet

from .corrupt_rows import read_each
from .counts import Tally, tallies
from .keyset import Order, Place


class Page(NamedTuple):
    """Some rows of a list, and where the pages before and after it begin."""

    rows: list[Any]
    previous: Place | None = None
    following: Place | None = None
    #: Whether the list goes on although this page is not full: more has yet to be looked at.
    unfinished: bool = False
    #: Rows that cannot be shown.
    damaged: int = 0


class Listing(Protocol):
    """Rows that are selected by the state, the filters and the search of a list."""

    @property
    def queryset(self) -> QuerySet[Any]:
        """All of them, for actions that take a queryset."""

    def page(self, place: str, size: int) -> Page:
        """Return the page at ``place``, as the address has it."""

    def tally(self) -> Tally | None:
        """Return how many there are; ``None``: that would take too long."""


def page_of(keys: list[Any], place: Place, size: int) -> tuple[list[Any], Page]:
    """Return the keys of a page in their order, and the page without its rows.

    ``keys`` are those from ``place`` on, one more than ``size`` if there is one.
    """
    more, shown = len(keys) > size, keys[:size]
    if place.backwards:
        shown.reverse()
    ahead, behind = (place.key is not None, more) if place.backwards else (more, place.key)
    previous = Place(shown[0], backwards=True) if shown and behind else None
    following = Place(shown[-1]) if shown and ahead else None
    return shown, Page([], previous, following)


@dataclass(frozen=True)
class ModelListing:
    """The rows of a table in the order of its primary key."""

    queryset: QuerySet[Any]

    @property
    def order(self) -> Order:
        return Order(self.queryset.model, (self.queryset.model._meta.pk.attname,))

    def page(self, place: str, size: int) -> Page:
        start = self.order.read(place)
        keys, page = page_of(self.order.keys(self.queryset, start, size + 1), start, size)
        rows = read_each(self.queryset, [key for (key,) in keys])
        found = [rows[key] for (key,) in keys if key in rows]
        shown = [row for row in found if row is not None]
        return page._replace(rows=shown, damaged=len(found) - len(shown))

    def tally(self) -> Tally:
        [tally] = tallies(self.queryset.db, [self.queryset.order_by()])
        return tally
