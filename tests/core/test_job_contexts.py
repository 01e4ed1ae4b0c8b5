"""What a job sets for itself ends with it, wherever it runs."""

from __future__ import annotations

import decimal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, cast

import pytest
from django.conf import settings
from django.core.cache import caches
from django.urls import get_script_prefix, get_urlconf, set_script_prefix, set_urlconf
from django.utils import timezone, translation

from steady_queue_core.configuration import Configuration
from steady_queue_core.processes.worker.event_loop import EventLoop
from steady_queue_core.processes.worker.frames import Frames
from steady_queue_core.processes.worker.task_server import TaskServer
from steady_queue_core.processes.worker.thread_pool import ThreadPool

#: Seconds that a test waits at most.
PATIENCE = 20.0

Work = Callable[[], Any]

_variable: ContextVar[str] = ContextVar("variable", default="unset")


def _change_decimals() -> None:
    context = decimal.getcontext()
    context.prec, context.rounding = 3, decimal.ROUND_UP


def _divide() -> str:
    return str(decimal.Decimal(2) / 3)


def _mark_cache() -> None:
    cast(Any, caches["default"]).mark = "left"


#: What a job may set, and what the next one sees of it.
TRACES: dict[str, tuple[Work, Work]] = {
    "language": (lambda: translation.activate("de"), translation.get_language),
    "no language": (translation.deactivate_all, translation.get_language),
    "time zone": (
        lambda: timezone.activate("Asia/Kolkata"),
        timezone.get_current_timezone_name,
    ),
    "URLs": (lambda: set_urlconf("shop.urls"), get_urlconf),
    "prefix": (lambda: set_script_prefix("/shop/"), get_script_prefix),
    "caches": (_mark_cache, lambda: getattr(caches["default"], "mark", None)),
    "variable": (lambda: _variable.set("left"), _variable.get),
    "decimals": (_change_decimals, _divide),
}


def in_thread(*work: Work) -> list[Any]:
    """Do pieces of work as jobs of one thread of a worker; return their values."""
    values: SimpleQueue[Any] = SimpleQueue()
    pool = ThreadPool(1, lambda claim, task: values.put(cast(Any, claim)()))
    pool.submit([cast(Any, (each, None)) for each in work])
    try:
        return [values.get(timeout=PATIENCE) for _ in work]
    finally:
        pool.close()
        pool._threads[0].join(PATIENCE)


def on_loop(*work: Work) -> list[Any]:
    values: SimpleQueue[Any] = SimpleQueue()

    async def run(each: Work) -> None:
        values.put(each())

    loop = EventLoop(1, lambda claim, task: run(cast(Any, claim)))
    loop.submit([cast(Any, (each, None)) for each in work])
    try:
        return [values.get(timeout=PATIENCE) for _ in work]
    finally:
        loop.close()
        assert loop._thread is not None
        loop._thread.join(PATIENCE)


def in_task_process(*work: Work) -> list[Any]:
    """The same with what serves jobs in a task process, in a thread of this one."""
    values: list[Any] = []
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs), pytest.MonkeyPatch.context() as patch:
        server = TaskServer(theirs, "worker-1", "default", Configuration.Worker(), {})

        def run(job: bytes) -> bytes:
            values.append(work[int(job)]())
            return job

        patch.setattr(server, "_run", run)
        thread = Thread(target=copy_context().run, args=[server.serve])
        thread.start()
        frames = Frames(ours, 1024)
        for number in range(len(work)):
            frames.send(b"%d" % number)
            assert frames.receive() == b"%d" % number
        ours.shutdown(socket.SHUT_WR)
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return values


executors = pytest.mark.parametrize("run", [in_thread, on_loop, in_task_process])


@pytest.fixture(autouse=True)
def a_process_that_has_begun() -> Iterator[None]:
    """What its main thread has used before is there for all of its jobs."""
    caches["default"].get("anything")
    with (
        translation.override("fr"),
        timezone.override("Asia/Tokyo"),
        decimal.localcontext(decimal.Context(prec=8)),
    ):
        yield


@executors
@pytest.mark.parametrize("name", TRACES)
def test_what_a_job_sets_reaches_neither_the_next_one_nor_the_process(
    run: Callable[..., list[Any]], name: str
) -> None:
    leave, look = TRACES[name]
    usual = look()
    before, _, after = run(look, leave, look)
    assert before == after
    assert look() == usual


@executors
def test_a_job_finds_what_a_new_thread_finds(run: Callable[..., list[Any]]) -> None:
    found = run(translation.get_language, timezone.get_current_timezone_name)
    assert found == [settings.LANGUAGE_CODE, settings.TIME_ZONE]


@executors
def test_a_job_calculates_as_the_process_does(run: Callable[..., list[Any]]) -> None:
    assert run(_divide) == ["0.66666667"]


@executors
def test_addresses_begin_with_the_name_of_the_script(
    run: Callable[..., list[Any]], settings: Any
) -> None:
    settings.FORCE_SCRIPT_NAME = "/shop/"
    assert run(get_script_prefix) == ["/shop/"]
