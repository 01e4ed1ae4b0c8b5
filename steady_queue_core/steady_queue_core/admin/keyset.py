"""Walking through rows by their keys: each page is a range of an index, wherever it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import CharField, DateTimeField, Model, QuerySet

from ..dialects import portable
from ..models.job import MAX_ID

#: The columns of the order, of one row.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Place:
    """Where a page begins: after the row with a key, or, going backwards, before it."""

    key: Key | None = None
    backwards: bool = False

    def __str__(self) -> str:
        assert self.key is not None
        values = [each.isoformat() if isinstance(each, datetime) else each for each in self.key]
        return ("before" if self.backwards else "after") + json.dumps(values)


START = Place()


@dataclass(frozen=True)
class Order:
    """An order of rows that an index has: columns, ``-`` before those that descend. The last one
    is unique."""

    model: type[Model]
    columns: tuple[str, ...]

    def read(self, text: str) -> Place:
        """Return the place that a page's address names; of anything else, the start."""
        for word, backwards in (("after", False), ("before", True)):
            if text.startswith(word):
                key = self._key(text.removeprefix(word))
                return START if key is None else Place(key, backwards)
        return START

    def keys(self, rows: QuerySet[Any], place: Place, limit: int) -> list[Key]:
        """Return the next ``limit`` keys from ``place`` on, in the order of the way taken."""
        columns = [_turned(each) for each in self.columns] if place.backwards else self.columns
        found: list[Key] = []
        for part in self._parts(rows, place):
            wanted = part.order_by(*columns).values_list(*self._names)
            found += wanted[: limit - len(found)]
            if len(found) >= limit:
                break
        return found

    @property
    def _names(self) -> list[str]:
        return [column.lstrip("-") for column in self.columns]

    def _parts(self, rows: QuerySet[Any], place: Place) -> Iterator[QuerySet[Any]]:
        """Yield the rows behind ``place`` in parts, each of them one range of the index: first
        those equal in all columns but the last, then those equal in fewer."""
        if place.key is None:
            yield rows
            return
        for position in reversed(range(len(self.columns))):
            column, name = self.columns[position], self._names[position]
            equal = dict(zip(self._names[:position], place.key, strict=False))
            comparison = "lt" if column.startswith("-") != place.backwards else "gt"
            yield rows.filter(**equal, **{f"{name}__{comparison}": place.key[position]})

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
        else:
            known = type(value) is int and abs(value) <= MAX_ID
        if not known:
            raise ValueError(value)
        return value


def is_storable(text: str) -> bool:
    """Whether every database can be asked for this text."""
    return "\0" not in text and text.encode("utf-8", "ignore").decode() == text


def _turned(column: str) -> str:
    return column.removeprefix("-") if column.startswith("-") else f"-{column}"
