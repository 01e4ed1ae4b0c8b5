"""Reading rows as they are now, in a caller's transaction that goes on seeing its beginning."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from .operations import Operations

Q = TypeVar("Q", bound="QuerySet[Any, Any]")


class PresentRows:
    """Reads what was committed before a statement begins, whatever the current transaction sees."""

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self._connection, self._dialect = connection, dialect

    @cached_property
    def need_locks(self) -> bool:
        """Whether only what the current transaction locks is read as of now."""
        return self._dialect.sees_past(self._connection)

    def of(self, rows: Q) -> Q:
        """Return ``rows``, to be read as of now. Where that needs locks, they are waited for."""
        return rows.select_for_update() if self.need_locks else rows

    def number_of(self, rows: QuerySet[Any]) -> int:
        """Return how many of ``rows`` there are now."""
        return len(self.of(rows.values_list("pk"))) if self.need_locks else rows.count()

    def any_of(self, rows: QuerySet[Any]) -> bool:
        """Return whether there are any of ``rows`` now, among them those that other transactions
        are changing. They are not waited for."""
        if not self.need_locks:
            return rows.exists()
        try:
            return bool(list(rows.select_for_update(nowait=True)[:1]))
        except DatabaseError as error:
            if self._dialect.is_contention(self._connection, error):
                return True
            raise

    def lock_last(self, rows: QuerySet[Any]) -> bool:
        """Lock the last one of ``rows`` that no other transaction has locked; return whether there
        was one. Whoever changes it then comes after this transaction."""
        last = rows.order_by("-pk")[:1]
        return bool(list(self._dialect.lock_rows(self._connection, last, wait=False)))
