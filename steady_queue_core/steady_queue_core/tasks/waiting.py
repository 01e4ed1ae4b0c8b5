"""Waiting for the end of a job."""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

from ..compat import TaskResult, TaskResultDoesNotExist
from ..dialects import Wakeup, dialect_for

#: Share of the time waited so far after which to look again, and the bounds in seconds.
BACK_OFF, FIRST_PAUSE, LONGEST_PAUSE = 0.1, 0.005, 0.5
#: The same where a bell rings for every commit: other jobs' commits ring it as well.
BELL_BACK_OFF, FIRST_BELL_PAUSE, LONGEST_BELL_PAUSE = 0.02, 0.002, 0.1

#: Seconds that nobody lives to see.
FOREVER = 1e12


def wait(result: TaskResult, timeout: float | timedelta | None) -> None:
    """Return when the job of ``result`` has ended, with ``result`` refreshed."""
    waiting = Wait(result, timeout)
    if waiting.has_ended():
        return
    with waiting.bell() as bell:
        while not waiting.has_ended():
            pause = waiting.next_pause(bell)
            if bell is None:
                time.sleep(pause)
            elif _rings(bell, pause):
                time.sleep(waiting.rest_after_ring())


async def await_result(result: TaskResult, timeout: float | timedelta | None) -> None:
    """Async version of :func:`wait`."""
    waiting = Wait(result, timeout)
    has_ended = sync_to_async(waiting.has_ended)
    if await has_ended():
        return
    with waiting.bell() as bell:
        while not await has_ended():
            pause = waiting.next_pause(bell)
            if bell is None:
                await asyncio.sleep(pause)
            elif await _arings(bell, pause):
                await asyncio.sleep(waiting.rest_after_ring())


class Wait:
    """Looks whether a job has ended, and knows when to look again."""

    def __init__(self, result: TaskResult, timeout: float | timedelta | None) -> None:
        self.result, self.timeout = result, seconds(timeout)
        backend, self.job_id = _place_of(result)
        self.stores_jobs: bool = getattr(backend, "stores_jobs", True)
        #: Alias of the database of the jobs; ``None``: the backend of another package knows.
        self.using: str | None = None
        if getattr(backend, "stores_jobs", False):
            self.using = backend.database
        self._began = time.monotonic()
        self._looks = self._failures = 0
        self._looked_at = self._began

    def has_ended(self) -> bool:
        """Look whether the job has ended; if so, refresh the result.

        Raises ``TimeoutError`` if it has not and the time is over, and
        ``TransactionManagementError`` if the caller's transaction would keep it from being seen.
        """
        if self.result.is_finished:
            return True
        if not self.result.id:
            raise TransactionManagementError(
                f"{self._name} is not stored yet: it is enqueued when the transaction commits. "
                "Wait for it after the commit."
            )
        is_over = self.elapsed >= self.timeout
        if self._looks_ended() or is_over:
            self.result.refresh()
        self._looks += 1
        self._looked_at = time.monotonic()
        if self.result.is_finished:
            return True
        self._require_visible_end()
        if is_over:
            raise TimeoutError(
                f"{self._name} has not ended within {self.timeout:g} s: it is {self.result.status}."
            )
        return False

    @property
    def elapsed(self) -> float:
        """Seconds since the wait began."""
        return time.monotonic() - self._began

    @contextmanager
    def bell(self) -> Iterator[Wakeup | None]:
        """Open the listener that hears each commit, if the database has one."""
        listener = None
        if self.using is not None and (dialect := dialect_for(self.using)).info.hears_commits:
            listener = dialect.wakeup(connections[self.using])
        try:
            yield listener
        finally:
            if listener is not None:
                listener.close()

    def next_pause(self, bell: Wakeup | None) -> float:
        """Return the seconds until the next look, unless the bell rings before."""
        pause = LONGEST_PAUSE
        if bell is None or not bell.in_order:
            pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, self.elapsed * BACK_OFF))
        return max(0.0, min(pause, self.timeout - self.elapsed))

    def rest_after_ring(self) -> float:
        """Return the seconds to let pass after a ring, so that a busy queue costs few looks."""
        rest = min(LONGEST_BELL_PAUSE, max(FIRST_BELL_PAUSE, self.elapsed * BELL_BACK_OFF))
        return max(0.0, min(self._looked_at + rest - time.monotonic(), self.timeout - self.elapsed))

    @property
    def _name(self) -> str:
        name: str = self.result.task.module_path
        return f"{name} #{self.result.id}" if self.result.id else name

    def _looks_ended(self) -> bool:
        if self.using is None:
            self.result.refresh()
            return False
        connection = connections[self.using]
        try:
            if not self._looks:
                return self._is_stored_as_ended(self.using)
            with _unlogged(connection):
                return self._is_stored_as_ended(self.using)
        except (OperationalError, InterfaceError):
            # A connection that was idle while we slept may be gone: the next look opens another.
            self._failures += 1
            connection.close_if_unusable_or_obsolete()
            if self._failures > 1 or connection.connection is not None:
                raise
            return False

    def _is_stored_as_ended(self, using: str) -> bool:
        from ..models import Job

        ends = Job.objects.using(using).filter(pk=self.job_id).values_list("finished_at")
        found = ends.first()
        if found is None:
            raise TaskResultDoesNotExist(
                f"{self._name} is gone: it was discarded, or has ended and is not preserved."
            )
        self._failures = 0
        return found[0] is not None

    def _require_visible_end(self) -> None:
        if self.using is None:
            if self.stores_jobs:
                return
            raise RuntimeError(
                f"{self._name} does not run by itself: TASKS[{self.result.backend!r}] keeps jobs "
                "in memory. Run them first, with "
                "steady_queue_core.testing.run_enqueued_tasks()."
            )
        connection = connections[self.using]
        if connection.in_atomic_block or (
            connection.connection is not None and not connection.get_autocommit()
        ):
            raise TransactionManagementError(
                f"{self._name} cannot be waited for inside a transaction on {self.using!r}, which "
                "may hold the job back until it commits, or never see its end. Wait after the "
                "commit."
            )


def _place_of(result: TaskResult) -> tuple[Any, str]:
    """Return the backend that stores the job of a result, and its id there."""
    backend: Any = result.task.get_backend()
    find = getattr(backend, "place_of", None)
    if find is None or not result.id:
        return backend, result.id
    found: tuple[Any, str] = find(result.id)
    return found


def seconds(timeout: float | timedelta | None) -> float:
    """Return a time-out in seconds. Raises ``TypeError`` and ``ValueError``."""
    if timeout is None:
        return math.inf
    if isinstance(timeout, timedelta):
        timeout = timeout.total_seconds()
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(
            f"timeout must be seconds, a timedelta or None, not of type {type(timeout).__name__}."
        )
    if not timeout >= 0:
        raise ValueError(f"timeout must not be negative: {timeout!r}.")
    # An int may be too great for a float.
    return min(timeout, FOREVER)


def _rings(bell: Wakeup, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(bell, selectors.EVENT_READ)
        rang = bool(selector.select(seconds))
    bell.clear()
    return rang


async def _arings(bell: Wakeup, seconds: float) -> bool:
    loop, rang = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(bell.fileno(), rang.set)
    try:
        async with asyncio.timeout(seconds):
            await rang.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(bell.fileno())
    bell.clear()
    return rang.is_set()


@contextmanager
def _unlogged(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep the statements of a long wait from filling ``connection.queries`` with ``DEBUG``."""
    log = connection.queries_log
    connection.queries_log = deque()
    try:
        yield
    finally:
        connection.queries_log = log
