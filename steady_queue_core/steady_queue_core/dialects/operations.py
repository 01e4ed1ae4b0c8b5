"""What modules that the facade imports know of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import on_commit

from .contention import until_free
from .membership import MemberState
from .outcome import Outcome
from .plugin import Plugin
from .records import EnqueuedJob, NewJob

T = TypeVar("T")


class Operations(Plugin, ABC):
    """The operations of ``Dialect`` that are parts of others; see there for the abstract ones."""

    def in_transaction(self, connection: BaseDatabaseWrapper, operation: Callable[[], T]) -> T:
        """Run ``operation`` in a transaction, and repeat it after a deadlock, unless it is part of
        the caller's."""

        def run() -> T:
            with self.transaction(connection):
                return operation()

        return until_free(connection, run, self.is_contention)

    def ring_after_commit(
        self, connection: BaseDatabaseWrapper, queue_names: Sequence[str]
    ) -> None:
        """Notify listeners when the caller's transaction commits, or now if there is none."""
        if not self.rings:
            return
        if connection.in_atomic_block:
            ring = partial(self.ring, connection, queue_names)
            on_commit(ring, using=connection.alias, robust=True)
        else:
            self.ring(connection, queue_names)

    @abstractmethod
    def current_time(self, connection: BaseDatabaseWrapper) -> datetime: ...

    @abstractmethod
    def list_queues(self, connection: BaseDatabaseWrapper, prefix: str = "") -> list[str]: ...

    @abstractmethod
    def insert_jobs(
        self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]
    ) -> list[EnqueuedJob]: ...

    @abstractmethod
    def lock_semaphores(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> None: ...

    @abstractmethod
    def end_claims(
        self, connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]
    ) -> set[int]: ...

    @abstractmethod
    def admit(
        self, connection: BaseDatabaseWrapper, keys: Sequence[str], moved: Collection[int] = ()
    ) -> int: ...

    @abstractmethod
    def end_members(
        self, connection: BaseDatabaseWrapper, ended: Mapping[int, MemberState]
    ) -> None: ...
