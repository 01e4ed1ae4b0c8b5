"""One database of the queue: the calling thread's connection to it, and its dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet

from ..features.retention.period import Period
from . import portable
from .contention import until_free
from .dialect import Dialect
from .joins import Joins
from .membership import MemberState
from .present_rows import PresentRows
from .ready import Ready
from .registry import dialect_for
from .rejected_rows import in_halves
from .unique_keys import UniqueKeys

M = TypeVar("M", bound=Model)
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True)
class Database:
    """A connection together with the dialect that drives it.

    Connections belong to threads: create one where it is used rather than passing it on.
    """

    connection: BaseDatabaseWrapper
    dialect: Dialect

    @classmethod
    def of(cls, alias: str) -> Database:
        """Return the calling thread's handle for a database alias."""
        return cls(connections[alias], dialect_for(alias))

    @property
    def alias(self) -> str:
        return self.connection.alias

    def transaction(self) -> AbstractContextManager[None]:
        return self.dialect.transaction(self.connection)

    def in_transaction(self, operation: Callable[[], T]) -> T:
        """Run ``operation`` in a transaction, and repeat it after a deadlock, unless it is part of
        the caller's."""
        return self.dialect.in_transaction(self.connection, operation)

    def until_free(self, operation: Callable[[], T]) -> T:
        """Run ``operation``, a transaction, and repeat it in the same way."""
        return until_free(self.connection, operation, self.dialect.is_contention)

    def lock_rows(self, rows: QuerySet[M], *, wait: bool) -> QuerySet[M]:
        return self.dialect.lock_rows(self.connection, rows, wait=wait)

    def insert_if_absent(self, row: Model, unique_fields: Sequence[str]) -> bool:
        return self.dialect.insert_if_absent(self.connection, row, unique_fields)

    def now(self) -> Expression:
        """The database's clock as an SQL expression."""
        return self.dialect.now(self.connection)

    def current_time(self) -> datetime:
        """Read the database's clock; aware, in UTC."""
        return self.dialect.current_time(self.connection)

    def storable_time(self) -> datetime:
        """Read the database's clock, in the form in which columns store it."""
        return portable.storable(self.current_time())

    def list_queues(self) -> list[str]:
        return self.dialect.list_queues(self.connection)

    def admit(self, keys: Sequence[str], moved: Collection[int] = ()) -> int:
        return self.dialect.admit(self.connection, keys, moved)

    def give_turns(self, job_ids: Collection[int]) -> None:
        """Give turns to those of these jobs that have become ready in fair queues."""
        Ready(self.connection, self.dialect).moved(job_ids)

    def keep(self, periods: Mapping[int, Period]) -> None:
        self.dialect.keep(self.connection, periods)

    @property
    def unique_keys(self) -> UniqueKeys:
        return UniqueKeys(self.connection, self.dialect)

    @property
    def present_rows(self) -> PresentRows:
        return PresentRows(self.connection, self.dialect)

    @property
    def joins(self) -> Joins:
        return Joins(self.connection, self.dialect)

    def end_members(self, ended: Mapping[int, MemberState]) -> None:
        self.dialect.end_members(self.connection, ended)

    def joined(self, act: Callable[[Joins], T]) -> T:
        """Do something to batches, in the current transaction, and notify listeners of the jobs
        that it moves on; return what ``act`` returns."""
        joins = self.joins
        done = act(joins)
        joins.ring()
        return done

    def end_if_done(self, batch_id: int) -> bool:
        """End a batch, in the current transaction, if none of its members is pending; return
        whether it has ended."""
        return self.joined(lambda joins: joins.try_end(batch_id))

    def ring(self, queue_names: Sequence[str]) -> None:
        self.dialect.ring(self.connection, queue_names)

    def ring_after_commit(self, queue_names: Sequence[str]) -> None:
        self.dialect.ring_after_commit(self.connection, queue_names)

    def in_halves(
        self, items: Sequence[K], do: Callable[[Sequence[K]], int]
    ) -> tuple[int, dict[K, Exception]]:
        """Do something with ``items``, by halves where the database refuses it for one of them;
        see ``rejected_rows.in_halves``."""
        return in_halves(self.connection, self.dialect, items, do)

    def is_contention(self, error: BaseException) -> bool:
        return self.dialect.is_contention(self.connection, error)
