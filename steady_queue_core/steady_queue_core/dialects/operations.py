"""What modules that the facade imports know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model, QuerySet

from .membership import MemberState
from .records import Arrival, DialectInfo, EnqueuedJob, NewJob, TurnKey, TurnRow


class Operations(Protocol):
    """The operations of ``Dialect`` that are parts of others; see there."""

    info: DialectInfo

    def transaction(self, connection: BaseDatabaseWrapper) -> AbstractContextManager[None]: ...

    def now(self, connection: BaseDatabaseWrapper) -> Expression: ...

    def current_time(self, connection: BaseDatabaseWrapper) -> datetime: ...

    def lock_rows(
        self, connection: BaseDatabaseWrapper, rows: QuerySet[Any], *, wait: bool
    ) -> QuerySet[Any]: ...

    def insert_if_absent(
        self, connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
    ) -> bool: ...

    def list_queues(self, connection: BaseDatabaseWrapper, prefix: str = "") -> list[str]: ...

    def is_contention(self, connection: BaseDatabaseWrapper, error: BaseException) -> bool: ...

    def is_lost_connection(self, connection: BaseDatabaseWrapper, error: BaseException) -> bool: ...

    def sees_past(self, connection: BaseDatabaseWrapper) -> bool: ...

    def upsert(
        self,
        connection: BaseDatabaseWrapper,
        rows: Sequence[Model],
        unique_fields: Sequence[str],
        update_fields: Sequence[str],
    ) -> None: ...

    def insert_jobs(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]: ...

    def lock_semaphores(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> None: ...

    @property
    def takes_turns(self) -> bool: ...

    def take_turn(self, connection: BaseDatabaseWrapper, arrival: Arrival) -> None: ...

    def lock_turns(
        self, connection: BaseDatabaseWrapper, keys: Sequence[TurnKey]
    ) -> dict[TurnKey, TurnRow]: ...

    def save_turns(
        self, connection: BaseDatabaseWrapper, rows: Mapping[TurnKey, TurnRow]
    ) -> None: ...

    def admit(self, connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int: ...

    def end_members(
        self, connection: BaseDatabaseWrapper, ended: Mapping[int, MemberState]
    ) -> None: ...
