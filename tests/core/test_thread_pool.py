"""Threads of a worker into which an exception comes from outside."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from steady_queue_core.processes.base.thread_interrupt import raise_in
from steady_queue_core.processes.worker.thread_pool import ThreadPool

from ..processes.waiting import wait_for


class Stray(BaseException):
    """Raised by a library, such as one that limits the time of a call, a moment too late."""


@pytest.mark.parametrize("kind", [Stray, SystemExit, KeyboardInterrupt, MemoryError])
def test_a_stray_exception_between_two_jobs_ends_no_thread_and_loses_no_job(
    kind: type[BaseException],
) -> None:
    ran: list[Any] = []
    pool = ThreadPool(1, lambda claim, task: ran.append(claim))
    try:
        [thread] = pool._threads
        for number in range(5):
            time.sleep(0.02)  # It waits for a job.
            assert thread.ident is not None
            raise_in(thread.ident, kind)
            pool.submit([(number, None)])  # type: ignore[list-item]  # any work
            wait_for(lambda number=number: ran[number:] == [number], 5, "the job")
        assert ran == list(range(5))
        assert pool.running == 0
        assert thread in threading.enumerate()
    finally:
        pool.close()
    thread.join(5)
    assert not thread.is_alive()
