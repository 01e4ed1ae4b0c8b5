"""Pages of rows and their number: each page is a range of an index, however deep in the list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from django.db.models import CharField, DateTimeField, FloatField, Model, QuerySet

from ..dialects import is_storable, portable
from ..models.job import MAX_ID
from .counts import BoundedCount, count_each
from .damage import read_in_order

#: The ordering columns of one row.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Cursor:
    """Where a page starts: after the row with a key or, going backwards, before it."""

    key: Key | None = None
    backwards: bool = False

    def __str__(self) -> str:
        assert self.key is not None
        values = [each.isoformat() if isinstance(each, datetime) else each for each in self.key]
        return ("before" if self.backwards else "after") + json.dumps(values)


START = Cursor()


@dataclass(frozen=True)
class Order:
    """An ordering that an index serves: columns, with ``-`` for descending ones. The last column is
    unique."""

    model: type[Model]
    columns: tuple[str, ...]
    #: The column before these in the index, in which all rows have one value, if the beginning is
    #: to be found by that index, whatever a planner knows.
    lead: str = ""

    def parse(self, text: str) -> Cursor:
        """Return the cursor that a URL names, or ``START`` if it is invalid."""
        for word, backwards in (("after", False), ("before", True)):
            if text.startswith(word):
                key = self._key(text.removeprefix(word))
                return START if key is None else Cursor(key, backwards)
        return START

    def keys(self, rows: QuerySet[Any], cursor: Cursor, limit: int) -> list[Key]:
        """Return the next ``limit`` keys from ``cursor`` on, in the direction of the cursor."""
        columns = [_reversed(each) for each in self.columns] if cursor.backwards else self.columns
        found: list[Key] = []
        for part in self._parts(rows, cursor):
            wanted = part.order_by(*columns).values_list(*self._names)
            found += wanted[: limit - len(found)]
            if len(found) >= limit:
                break
        return found

    @property
    def _names(self) -> list[str]:
        return [column.lstrip("-") for column in self.columns]

    def _parts(self, rows: QuerySet[Any], cursor: Cursor) -> Iterator[QuerySet[Any]]:
        """Yield the rows beyond ``cursor`` in parts, each one range of the index: first those that
        are equal in all columns but the last, then those that are equal in fewer."""
        if cursor.key is None:
            yield rows
            return
        for position in reversed(range(len(self.columns))):
            column, name = self.columns[position], self._names[position]
            equal = dict(zip(self._names[:position], cursor.key, strict=False))
            comparison = "lt" if column.startswith("-") != cursor.backwards else "gt"
            yield rows.filter(**equal, **{f"{name}__{comparison}": cursor.key[position]})

    def _key(self, text: str) -> Key | None:
        try:
            values = json.loads(text)
            if not isinstance(values, list) or len(values) != len(self.columns):
                return None
            return tuple(map(self._value, self._names, values))
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None

    def _value(self, name: str, value: Any) -> Any:
        field = self.model._meta.get_field(name)
        if isinstance(field, DateTimeField):
            return portable.storable(portable.aware(datetime.fromisoformat(value)))
        if isinstance(field, CharField):
            known = isinstance(value, str) and is_storable(value)
        elif isinstance(field, FloatField):
            known = type(value) in (int, float) and abs(value) <= MAX_ID
        else:
            known = type(value) is int and abs(value) <= MAX_ID
        if not known:
            raise ValueError(value)
        return value


def _reversed(column: str) -> str:
    return column.removeprefix("-") if column.startswith("-") else f"-{column}"


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


def unfinished(page: Page, start: Cursor, last: Key) -> Page:
    """Return a page that goes on behind the ``last`` key that was examined."""
    if start.backwards:
        return page._replace(previous=Cursor(last, backwards=True), unfinished=True)
    return page._replace(following=Cursor(last), unfinished=True)


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
