"""The event loop of a worker, apart from its jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from threading import Event, Thread
from typing import Any, cast

import pytest

from steady_queue_core.processes.worker.event_loop import EventLoop

#: Seconds that a test waits at most.
PATIENCE = 20.0


def run(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run coroutines as the jobs of a loop, and wait for their ends."""
    ended = Event()

    async def last() -> None:
        ended.set()

    loop = EventLoop(10, lambda coroutine, task: cast(Any, coroutine))
    loop.submit([cast(Any, (coroutine, None)) for coroutine in (*coroutines, last())])
    assert ended.wait(PATIENCE)
    loop.close()
    assert loop._thread is not None
    loop._thread.join(PATIENCE)
    assert not loop._thread.is_alive()


@pytest.mark.parametrize("missing", ["loop", "thread"])
def test_jobs_can_be_taken_back_from_a_loop_that_cannot_be_started(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> None:
        raise OSError("too many open files") if missing == "loop" else RuntimeError("no thread")

    if missing == "loop":
        monkeypatch.setattr(asyncio, "new_event_loop", refuse)
    else:
        monkeypatch.setattr(Thread, "start", refuse)
    loop = EventLoop(10, cast(Any, None))
    loop.submit([cast(Any, ("first", None))])
    assert loop.is_crippled
    loop.submit([cast(Any, ("second", None))])
    assert cast(Any, loop.withdraw()) == ["first", "second"]
    loop.interrupt()
    loop.close()


def test_coroutines_that_never_wait_let_one_go_on_that_does() -> None:
    ended: list[int] = []
    ended_meanwhile: list[int] = []

    async def waits() -> None:
        await asyncio.sleep(0)
        ended_meanwhile.append(len(ended))

    async def never_waits(number: int) -> None:
        time.sleep(0.000_1)
        ended.append(number)

    run(waits(), *(never_waits(number) for number in range(500)))
    assert ended == list(range(500))
    assert ended_meanwhile[0] < 500


def test_no_more_coroutines_run_at_once_than_have_room() -> None:
    running: set[int] = set()
    most: list[int] = []

    async def waits(number: int) -> None:
        running.add(number)
        most.append(len(running))
        await asyncio.sleep(0)
        running.discard(number)

    run(*(waits(number) for number in range(100)))
    assert max(most) == 10


def test_each_coroutine_is_a_task_of_its_own() -> None:
    tasks: set[asyncio.Task[Any] | None] = set()

    async def looks() -> None:
        tasks.add(asyncio.current_task())

    run(*(looks() for _ in range(50)))
    assert len(tasks) == 50
    assert None not in tasks
