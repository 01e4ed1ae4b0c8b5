"""A worker's event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from threading import Thread
from typing import Any

from ..compat import Task
from ..dialects import ClaimedJob

logger = logging.getLogger("steady_queue.worker")


class EventLoop:
    """Runs coroutine tasks; its thread starts with the first of them."""

    def __init__(self, run: Callable[[ClaimedJob, Task], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[None]] = set()

    def submit(self, work: list[tuple[ClaimedJob, Task]]) -> None:
        """Start jobs on the loop."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            Thread(
                target=self._serve, args=[self._loop], name="steady-queue-loop", daemon=True
            ).start()
        self._loop.call_soon_threadsafe(self._start, work)

    def _start(self, work: list[tuple[ClaimedJob, Task]]) -> None:
        assert self._loop is not None
        for claim, task in work:
            # The loop itself keeps only weak references to what runs on it.
            running = self._loop.create_task(self._run(claim, task), context=copy_context())
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while True:
            try:
                loop.run_forever()
            except BaseException:
                # A task spawned by a task raised SystemExit: the others run on.
                logger.exception("The event loop was interrupted; it goes on")
