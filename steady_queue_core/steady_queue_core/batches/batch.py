"""Batch: jobs that belong together, from where they are enqueued to their end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Self

from asgiref.sync import sync_to_async

from ..bulk import Call, enqueue_many
from ..compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    AnyTask,
    AnyTaskResult,
    Task,
    task_backends,
)
from ..dialects.callbacks import ON_FAILURE, ON_FINISH, ON_SUCCESS
from ..dialects.database import Database
from ..errors import AlreadyFinished
from ..features.key_options import CallKey
from ..tasks import current_batch
from ..tasks.current_batch import OpenBatch
from ..tasks.placement import alias_beside
from .backends import backend_of_new, storing_backend
from .graph import BatchOptions
from .handle import BatchHandle
from .rows import cancel, create, missing_tables_named, start
from .transactions import in_transaction_on, transaction_on
from .values import row_values

#: What ``Batch`` makes, as opposed to chains, groups and workflows.
KIND = "batch"


class Batch(BatchHandle):
    """Jobs that belong together. What is enqueued in its ``with`` block is stored when that ends,
    in one transaction on the queue's database, or in the caller's; if it raises, nothing is.

    Callbacks are calls of tasks, which are enqueued with the end of the last job: ``on_success`` if
    all have succeeded, else ``on_failure``; then ``on_finish``. They find the batch as
    ``context.batch``. A batch takes more jobs until it has ended: open it again with ``with``, in
    one of its jobs with ``with context.batch``. One that is made in the block of another is one
    member of that.

    ``shard_key`` chooses the shard of a sharded ``backend``, where all members and callbacks are
    stored, whatever their own keys; in the block of another batch it is that batch's.

    Raises ``InvalidTask``, ``TypeError`` and ``TaskArgumentError`` for callbacks and metadata that
    cannot be stored.
    """

    #: What is to be stored, until it is.
    _new: dict[str, Any] | None = None

    def __init__(
        self,
        description: str = "",
        *,
        metadata: Mapping[str, Any] | None = None,
        on_success: Call | AnyTask | None = None,
        on_failure: Call | AnyTask | None = None,
        on_finish: Call | AnyTask | None = None,
        backend: str = DEFAULT_TASK_BACKEND_ALIAS,
        shard_key: CallKey | None = None,
    ) -> None:
        super().__init__(backend_of_new(backend, shard_key))
        callbacks = {ON_SUCCESS: on_success, ON_FAILURE: on_failure, ON_FINISH: on_finish}
        options = BatchOptions(description, metadata, callbacks)
        self._new = row_values(KIND, options, self.backend)

    @cached_property
    def _opened(self) -> list[tuple[Any, AbstractContextManager[Any] | None]]:
        """The blocks that are open: what was open before each, and its transaction."""
        return []

    @classmethod
    def get(cls, batch_id: int, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> Batch:
        """Return the batch with this id. Raises ``BatchDoesNotExist``."""
        return cls.of(batch_id, storing_backend(backend))

    def add(self, calls: Iterable[Call]) -> list[AnyTaskResult]:
        """Enqueue calls as members of the batch, all or none; return their results.

        Raises what ``enqueue_many()`` raises, and ``AlreadyFinished``.
        """
        given, database = list(calls), Database.of(self.using)
        stored: list[bool] = []
        try:
            with missing_tables_named(database):
                results = in_transaction_on(
                    database,
                    lambda: self._add(database, given),
                    repeats=all(map(self._stores_beside, given)),
                    # Hooks of the project may raise after that.
                    when_committed=partial(stored.append, True),
                )
            stored.append(True)
        finally:
            if not self._opened:
                self._end_block(is_stored=bool(stored))
        return results

    def _stores_beside(self, each: Call) -> bool:
        """Whether nothing is left of a call once the transaction of the batch is rolled back."""
        if not (isinstance(each, Call) and isinstance(each.task, Task)):
            return False
        backend: Any = task_backends[alias_beside(each.task.backend, self.backend)]
        return getattr(backend, "stores_jobs", False) and backend.database == self.using

    def _add(self, database: Database, calls: Sequence[Call]) -> list[AnyTaskResult]:
        """Enqueue calls in the current transaction."""
        if not self._open():
            raise self._closed()
        token = current_batch.enter(OpenBatch(self.id, self.using))
        self._opened.append((token, None))
        try:
            results = enqueue_many(calls)
        finally:
            self._opened.pop()
            current_batch.leave(token)
        if not self._opened:
            start(database, self.id)
        return results

    async def aadd(self, calls: Iterable[Call]) -> list[AnyTaskResult]:
        """Async version of :meth:`add`."""
        added: list[AnyTaskResult] = await sync_to_async(self.add, thread_sensitive=True)(calls)
        return added

    def __enter__(self) -> Self:
        database = Database.of(self.using)
        with missing_tables_named(database):
            manager = database.until_free(lambda: self._entered(database))
        token = current_batch.enter(OpenBatch(self.id, self.using))
        self._opened.append((token, manager))
        return self

    def _entered(self, database: Database) -> AbstractContextManager[Any]:
        """Return a transaction that was begun, in which the batch is open."""
        manager = transaction_on(database)
        manager.__enter__()
        try:
            is_open = self._open()
        except BaseException as error:
            manager.__exit__(type(error), error, error.__traceback__)
            raise
        if not is_open:
            manager.__exit__(None, None, None)
            raise self._closed()
        return manager

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token, manager = self._opened.pop()
        assert manager is not None
        current_batch.leave(token)
        try:
            if error is None and not self._opened:
                start(Database.of(self.using), self.id)
        except BaseException as own:
            manager.__exit__(type(own), own, own.__traceback__)
            raise
        manager.__exit__(kind, error, traceback)
        if not self._opened:
            self._end_block(is_stored=error is None)

    async def __aenter__(self) -> Self:
        """Open the batch without a transaction: each call is stored at once."""
        if not await sync_to_async(self._open, thread_sensitive=True)():
            raise self._closed()
        token = current_batch.enter(OpenBatch(self.id, self.using))
        self._opened.append((token, None))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token, _ = self._opened.pop()
        current_batch.leave(token)
        if not self._opened:
            await sync_to_async(self._close, thread_sensitive=True)(error is None)

    def _open(self) -> bool:
        """Create the batch if it is new, else lock it; return whether it takes calls."""
        database = Database.of(self.using)
        if self._new is not None and not self._opened:
            self._set_id(create(database, self._new, current_batch.current()))
            return True
        return not database.in_transaction(lambda: database.joins.lock_open({self.id}))

    def _close(self, is_complete: bool) -> None:
        database = Database.of(self.using)
        if not is_complete:
            cancel(database, self.id)
        start(database, self.id)
        self._end_block(is_stored=True)

    def _end_block(self, *, is_stored: bool) -> None:
        if is_stored:
            self._new = None
            self.refresh()
        elif self._new is not None:
            self._id = None  # A block that is tried again makes another one.

    def _closed(self) -> AlreadyFinished:
        return AlreadyFinished(
            f"Batch {self.id} takes no more jobs: it has ended, was cancelled, or is gone. Make "
            "another one."
        )
