"""What a task learns of the attempt that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe

from ..compat import AnyTask, TaskContext
from ..features.attempt_ending import AttemptEnding
from .cancellation import is_requested

P = ParamSpec("P")
T = TypeVar("T")

NO_ATTEMPT = "This context does not belong to an attempt."
IN_COROUTINES = "You cannot call this from a coroutine: await context.{}() there."


class Steps(Protocol):
    """Takes the steps of a task: its ``AttemptSteps``."""

    def step(self, name: Any, function: Any, args: Any, kwargs: Any, /) -> Any: ...
    async def astep(self, name: Any, function: Any, args: Any, kwargs: Any, /) -> Any: ...
    def sleep(self, name: Any, delay: Any, /) -> None: ...
    async def asleep(self, name: Any, delay: Any, /) -> None: ...


class Notes(Protocol):
    """Stores what a task says while it runs: its ``AttemptNotes``."""

    @property
    def steps(self) -> Steps: ...
    @property
    def checkpointed(self) -> Any: ...
    def checkpoint(self, data: Any, /) -> None: ...
    def progress(self, done: float, total: float | None, text: str, /) -> None: ...
    def is_held(self) -> bool: ...


class Calls(Protocol):
    """Keeps the calls that a task leaves to the transaction of its outcome: its ``Outbox``."""

    def enqueue(self, task: AnyTask, args: Any, kwargs: Any, /) -> None: ...


class Running(Protocol):
    """The attempt that a context belongs to: an ``Attempt``."""

    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def batch_id(self) -> int | None: ...
    @property
    def size(self) -> int: ...
    def ending_of(self, error: BaseException | None, /) -> AttemptEnding: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskContext(TaskContext):  # type: ignore[misc]  # The stubs miss frozen=True.
    """The first argument of a task with ``takes_context``."""

    #: The fencing token: grows with every claim of this job. A resource that refuses tokens
    #: smaller than the largest one seen is safe from a worker that lost the job unnoticed.
    token: int
    #: When this attempt has to end, by the database's clock; ``None``: whenever.
    deadline: datetime | None = None
    #: The instant that a schedule enqueued the job for, in UTC, however late the attempt is;
    #: ``None``: no schedule did.
    intended_time: datetime | None = None
    #: What ``enqueue()`` fills.
    outbox: Calls | None = field(default=None, repr=False, compare=False)
    #: Finds the batch of the job; ``None``: it has none.
    find_batch: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    #: Finds the workflow of the job; ``None``: it has none.
    find_workflow: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    #: What checkpoints, progress and steps go to.
    notes: Notes | None = field(default=None, repr=False, compare=False)
    #: The attempt itself.
    running: Running | None = field(default=None, repr=False, compare=False)

    @property
    def batch(self) -> Any:
        """The ``Batch`` that the job is a member or a callback of, as it is now; ``None`` if there
        is none.

        Raises ``BatchDoesNotExist`` if it was cleared, and errors of the database.
        """
        return None if self.find_batch is None else self.find_batch()

    async def abatch(self) -> Any:
        """Async version of :attr:`batch`."""
        return await sync_to_async(lambda: self.batch, thread_sensitive=True)()

    @property
    def workflow(self) -> Any:
        """The workflow that the job is a node of, which takes more of them with ``add()``; ``None``
        if there is none."""
        return None if self.find_workflow is None else self.find_workflow()

    @property
    def cancel_requested(self) -> bool:
        """Whether the job was cancelled and this attempt is to end."""
        return is_requested(int(self.task_result.id), self.token)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the caller has passed as ``metadata=``."""
        result: Any = self.task_result
        return dict(result.metadata)

    @property
    def headers(self) -> dict[str, str]:
        """What middleware has given the job on its way with ``call.carrying()``. Whoever can write
        to the database may have forged it."""
        return self._running.headers

    @property
    def batch_id(self) -> int | None:
        """The id of the batch that the job is a member or a callback of; ``None``: it is of none.
        It asks no database."""
        return self._running.batch_id

    @property
    def size(self) -> int:
        """Bytes of the encoded arguments, before they were compressed, encrypted or signed."""
        return self._running.size

    def ending_of(self, error: BaseException | None, /) -> AttemptEnding:
        """Return how the attempt ends if ``error`` leaves it; ``None``: it returns. For middleware.

        Calls the ``backoff`` of the task, once for each error.
        """
        return self._running.ending_of(error)

    def is_failure(self, error: BaseException, /) -> bool:
        """Whether ``error`` is a failure, and none of the endings that a task chooses, no
        cancellation, and not the stop of the worker."""
        return self.ending_of(error).is_failure

    def will_retry(self, error: BaseException, /) -> bool:
        """Whether ``error`` is a failure after which another attempt follows."""
        return self.ending_of(error) is AttemptEnding.RETRIED

    def enqueue(self, task: AnyTask, /, *args: Any, **kwargs: Any) -> None:
        """Enqueue a call of ``task`` if this attempt succeeds, in the transaction of its outcome;
        otherwise, nothing becomes of it.

        Arguments are checked and encoded at once. There is no result: the job has no id until it
        is stored. Calls are stored in their order; a ``run_after`` timedelta counts from then.

        Raises what ``task.enqueue()`` raises; ``InvalidTask`` if ``task`` stores its jobs in
        another database; ``OutboxFullError`` and ``OutboxClosedError``.
        """
        if self.outbox is None:
            raise RuntimeError(NO_ATTEMPT)
        self.outbox.enqueue(task, args, kwargs)

    async def aenqueue(self, task: AnyTask, /, *args: Any, **kwargs: Any) -> None:
        """Async version of :meth:`enqueue`, for keys and middleware that query a database."""
        await sync_to_async(self.enqueue, thread_sensitive=True)(task, *args, **kwargs)

    @async_unsafe(IN_COROUTINES.format("astep"))
    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what ``function(*args, **kwargs)`` has returned when an attempt at this job called
        it under ``name``; if none has, call it, and store what it returns.

        It is of the types that arguments have, except model instances, and stored at once, or with
        the transaction that the task has begun on the queue's database.

        Raises ``StepOrderError`` if an attempt before has taken its steps in another order.
        ``TaskArgumentError``: what the function returned cannot be stored. ``ValueError``: this
        attempt has used the name. ``Preempted`` if this attempt has lost its claim: let the task
        end. ``StepRefusedError``: the task is delivered transactionally.
        """
        value: T = self._notes.steps.step(name, function, args, kwargs)
        return value

    @overload
    async def astep(
        self,
        name: str,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...

    @overload
    async def astep(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...

    async def astep(self, name: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Async version of :meth:`step`. A coroutine function is awaited; another one runs in the
        thread of ``sync_to_async``."""
        return await self._notes.steps.astep(name, function, args, kwargs)

    @async_unsafe(IN_COROUTINES.format("asleep"))
    def sleep(self, name: str, delay: float | timedelta | datetime, /) -> None:
        """Return if the sleep is over that an attempt at this job has begun under ``name``.
        Otherwise end the attempt, so that it holds no thread; another one begins when it is over.

        ``delay``: seconds or a timedelta, from when the sleep begins, or an aware datetime. No
        attempt is counted, and no snooze. ``name`` is as for :meth:`step`.

        Raises ``StepRefusedError`` if the task is delivered transactionally, or is to start at most
        once.
        """
        self._notes.steps.sleep(name, delay)

    async def asleep(self, name: str, delay: float | timedelta | datetime, /) -> None:
        """Async version of :meth:`sleep`."""
        await self._notes.steps.asleep(name, delay)

    @async_unsafe(IN_COROUTINES.format("acheckpoint"))
    def checkpoint(self, data: Any, /) -> None:
        """Store ``data`` for the next attempt, which finds it as ``checkpointed``.

        ``data`` is of the types that arguments have, except model instances. It is stored at once,
        or with the transaction that the task has begun on the queue's database.

        Raises ``Preempted`` if this attempt has lost its claim: let the task end.
        ``TaskArgumentError``: the data cannot be stored. ``CheckpointRefusedError``: the task is
        delivered transactionally. Errors of the database are raised as they are.
        """
        self._notes.checkpoint(data)

    async def acheckpoint(self, data: Any, /) -> None:
        """Async version of :meth:`checkpoint`."""
        await sync_to_async(self._notes.checkpoint, thread_sensitive=True)(data)

    @property
    def checkpointed(self) -> Any:
        """What was stored last by ``checkpoint()``, in this attempt or in one before; ``None`` if
        nothing was.

        Raises ``DeserializationError`` if the stored value cannot be trusted or read.
        """
        return self._notes.checkpointed

    @async_unsafe(IN_COROUTINES.format("aprogress"))
    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Tell how far the task has come: ``done`` of ``total``, in any unit, with a short
        ``text``.

        ``result.progress`` and the admin show it. It is stored at most once a second, and the last
        one with the outcome.

        Raises ``TypeError`` and ``ValueError`` for values that are none, and ``Preempted`` if this
        attempt has lost its claim: let the task end.
        """
        self._notes.progress(done, total, text)

    async def aprogress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Async version of :meth:`progress`."""
        await sync_to_async(self._notes.progress, thread_sensitive=True)(done, total, text)

    @async_unsafe(IN_COROUTINES.format("ais_held"))
    def is_held(self) -> bool:
        """Ask the database whether the job is still this attempt's. Once it is not, nothing that
        the task returns is stored."""
        return self._notes.is_held()

    async def ais_held(self) -> bool:
        """Async version of :meth:`is_held`."""
        return await sync_to_async(self._notes.is_held, thread_sensitive=True)()

    @property
    def _running(self) -> Running:
        if self.running is None:
            raise RuntimeError(NO_ATTEMPT)
        return self.running

    @property
    def _notes(self) -> Notes:
        if self.notes is None:
            raise RuntimeError(NO_ATTEMPT)
        return self.notes
