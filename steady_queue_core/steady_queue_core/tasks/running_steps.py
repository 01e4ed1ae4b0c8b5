"""The steps of an attempt that are being taken: none goes on behind the end of the attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Seconds between two looks whether steps have ended in other threads.
PAUSE = 0.01


class RunningSteps:
    """Knows the steps that run. Any thread of the task may use it."""

    def __init__(self) -> None:
        #: What stands for each of them.
        self._running: set[object] = set()
        #: The asyncio tasks that await one.
        self._awaiting: list[asyncio.Task[object]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the block as a step that runs."""
        step = object()
        self._running.add(step)
        try:
            yield
        finally:
            self._running.discard(step)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Let the running coroutine be cancelled inside the block, if the attempt ends."""
        current = asyncio.current_task()
        if current is None:
            yield
            return
        self._awaiting.append(current)
        try:
            yield
        finally:
            self._awaiting.remove(current)

    def await_ends(self) -> None:
        """Wait for the steps that other threads take: nothing can keep them from going on."""
        while self._running:
            time.sleep(PAUSE)

    async def stop(self) -> None:
        """Cancel the coroutines that await steps beside the running one, and wait for their ends,
        and for steps that threads take. A cancellation does not keep it from waiting."""
        current = asyncio.current_task()
        while others := {each for each in self._awaiting if each is not current}:
            for each in others:
                each.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait(others)
        while self._running:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(PAUSE)
