"""The durable steps and sleeps of an attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any, Protocol

from asgiref.sync import iscoroutinefunction, sync_to_async

from ..arguments import DeserializationError
from ..dialects import StepRecord
from ..durations import LONGEST
from ..errors import StepRefusedError
from ..features.delivery.options import AT_MOST_ONCE, TRANSACTIONAL
from ..features.steps.sleep import DurableSleep, end_of_sleep
from ..middleware import QuietCall
from ..payloads import Scope, step_scope
from .attempt_payloads import AttemptPayloads
from .claim_hold import ClaimHold
from .running_steps import RunningSteps
from .step_order import StepOrder, checked_name, taken_twice

NO_STEPS = (
    "A task that is delivered transactionally cannot take steps: if it does not come to its end, "
    "everything that it has written is rolled back, the steps as well. Call the function itself, "
    "or choose another delivery."
)
NO_SLEEP = (
    "A task that is to start at most once cannot sleep, since it would start again afterwards. "
    "Choose another delivery."
)
#: What stands for the value of a step that is not stored.
MISSING = object()


class StepStore(Protocol):
    """Where steps are kept."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether what is saved now may still be rolled back by the task."""

    def save_step(self, step: StepRecord, /) -> bool:
        """Store a step unless the claim is lost; return whether it is held."""

    def load_steps(self, job_id: int, /) -> list[StepRecord]:
        """Return what is stored of the steps of a job."""


@dataclass(eq=False, slots=True)
class Call:
    """A call of ``step()`` or ``sleep()`` in an attempt."""

    name: str
    position: int
    is_sleep: bool
    is_running: bool = True
    #: Whether its value is stored, by this attempt or by one before.
    is_stored: bool = False
    #: Whether that may have been rolled back by the task.
    is_doubtful: bool = False

    @property
    def what(self) -> str:
        """What it is in messages."""
        return f"{'sleep' if self.is_sleep else 'step'} {self.name!r}"


class AttemptSteps:
    """Takes the steps of one attempt that no attempt before has taken. Any thread of the task may
    use it."""

    def __init__(
        self,
        hold: ClaimHold,
        backend: Any,
        store: Callable[[], StepStore],
        now: Callable[[], datetime],
        delivery: str | None,
    ) -> None:
        self._hold, self._backend = hold, backend
        self._payloads, self._store = AttemptPayloads(backend), store
        self._now, self._delivery = now, delivery
        self._lock, self._loading = Lock(), Lock()
        #: Those that are being taken.
        self.running = RunningSteps()
        self._calls: dict[str, Call] = {}
        #: What the attempts before have stored; ``None``: nobody has looked.
        self._order = StepOrder([]) if hold.claim.is_first else None
        #: The sleeps that this attempt has begun, by name.
        self._begun: dict[str, tuple[datetime, StepRecord]] = {}

    @property
    def begun_sleeps(self) -> tuple[StepRecord, ...]:
        """The sleeps to store with the outcome."""
        return tuple(record for _, record in self._begun.values())

    @property
    def are_used(self) -> bool:
        """Whether this attempt knows of steps that are stored."""
        return any(call.is_stored for call in self._calls.values())

    def step(self, name: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the value of a step, which is taken unless it is stored."""
        _require_function(name, function)
        if iscoroutinefunction(function):
            raise TypeError(
                f"step {name!r}: its function is a coroutine. Await context.astep() in a coroutine."
            )
        return self._take(self._begin(name), QuietCall(function, *args, **kwargs))

    async def astep(self, name: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Async version of :meth:`step`, which awaits coroutines on the running loop."""
        _require_function(name, function)
        # Before anything is awaited: calls keep their order.
        call = self._begin(name)
        if not iscoroutinefunction(function):
            take = sync_to_async(self._take, thread_sensitive=True)
            with self.running.awaited():
                return await take(call, QuietCall(function, *args, **kwargs))
        with self.running.awaited(), self._running(call):
            value = await self._afind(call)
            if value is MISSING:
                value = await function(*args, **kwargs)
                value = await sync_to_async(self._save, thread_sensitive=True)(call, value)
        return value

    def sleep(self, name: Any, delay: Any) -> None:
        """Raise ``DurableSleep`` unless the sleep is over."""
        call, until = self._begin_sleep(name, delay)
        with self._running(call):
            self._sleep(call, self._find(call), until)

    async def asleep(self, name: Any, delay: Any) -> None:
        """Async version of :meth:`sleep`."""
        call, until = self._begin_sleep(name, delay)
        with self.running.awaited(), self._running(call):
            self._sleep(call, await self._afind(call), until)

    # --- calls

    def _begin_sleep(self, name: Any, delay: Any) -> tuple[Call, datetime]:
        if self._delivery == AT_MOST_ONCE:
            raise StepRefusedError(NO_SLEEP)
        until = end_of_sleep(delay, self._now())
        return self._begin(name, is_sleep=True), until

    def _begin(self, name: Any, *, is_sleep: bool = False) -> Call:
        """Return the call with its place in the order; one that has failed may be repeated."""
        name = checked_name(name)
        if self._delivery == TRANSACTIONAL:
            raise StepRefusedError(NO_STEPS)
        with self._lock:
            self._hold.require()
            call = self._calls.get(name)
            if call is None:
                call = self._calls[name] = Call(name, len(self._calls), is_sleep)
            elif call.is_running or (call.is_stored and not call.is_doubtful):
                raise taken_twice(name)
            call.is_running, call.is_sleep = True, is_sleep
        return call

    @contextmanager
    def _running(self, call: Call) -> Iterator[None]:
        try:
            with self.running.running():
                yield
        finally:
            call.is_running = False

    def _take(self, call: Call, function: Callable[[], Any]) -> Any:
        with self._running(call):
            value = self._find(call)
            return self._save(call, function()) if value is MISSING else value

    def _sleep(self, call: Call, stored: Any, until: datetime) -> None:
        now = self._now()
        if stored is not MISSING:
            if not isinstance(stored, datetime) or stored.utcoffset() is None:
                raise DeserializationError(f"The stored {call.what} does not say when it is over.")
            until = stored
        elif call.name in self._begun:
            until, _ = self._begun[call.name]
        # A row may say anything.
        delay = min(until - now, LONGEST).total_seconds()
        if delay <= 0:
            return
        if stored is MISSING:
            text = self._payloads.encode(until, call.what)
            self._begun[call.name] = until, self._record(call, text)
        raise DurableSleep(call.name, self._hold.claim.job_id, until, delay)

    # --- what is stored

    async def _afind(self, call: Call) -> Any:
        if self._order is not None and not call.is_doubtful:
            return self._find(call)
        return await sync_to_async(self._find, thread_sensitive=True)(call)

    def _find(self, call: Call) -> Any:
        """Return the value that is stored; ``MISSING`` if the step is to be taken. Raises
        ``StepOrderError`` and ``DeserializationError``."""
        if call.is_doubtful:
            self._settle_doubt(call)
        with self._loading:
            if self._order is None:
                self._order = StepOrder(self._load())
        found = self._order.find(call.name, call.position, is_sleep=call.is_sleep)
        if found is None:
            return MISSING
        call.is_stored = True
        text = self._payloads.open(found.data, self._scope(call))
        return self._payloads.decode(text, call.what)

    def _settle_doubt(self, call: Call) -> None:
        """Find out whether the task has rolled back what it had stored."""
        if any(each.name == call.name for each in self._load()):
            raise taken_twice(call.name)
        call.is_stored = call.is_doubtful = False

    def _load(self) -> list[StepRecord]:
        found = self._store().load_steps(self._hold.claim.job_id)
        for step in found:
            self._hold.require_latest(step.token)
        return found

    def _save(self, call: Call, value: Any) -> Any:
        """Store the value of a step; return it as the next attempt will find it."""
        if isawaitable(value):
            if iscoroutine(value):
                value.close()
            raise TypeError(
                f"{call.what}: its function returned something to await. Await context.astep() in "
                "a coroutine, and pass it the coroutine function itself."
            )
        text = self._payloads.encode(value, call.what)
        self._hold.require()
        store = self._store()
        call.is_doubtful = store.is_in_transaction
        if not store.save_step(self._record(call, text)):
            raise self._hold.lost()
        call.is_stored = True
        return self._payloads.decode(text, call.what)

    def _record(self, call: Call, text: str) -> StepRecord:
        claim = self._hold.claim
        data = self._payloads.seal(text, self._scope(call))
        return StepRecord(claim.job_id, claim.token, call.name, call.position, call.is_sleep, data)

    def _scope(self, call: Call) -> Scope:
        claim = self._hold.claim
        return step_scope(claim, claim.job_id, call.name, is_sleep=call.is_sleep)


def _require_function(name: Any, function: Any) -> None:
    if not callable(function):
        raise TypeError(
            f"step {name!r}: pass a function and its arguments, not the "
            f"{type(function).__name__} that it returns: context.step({name!r}, function, ...)"
        )
