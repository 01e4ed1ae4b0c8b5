"""An interruption hits the job that is meant, or nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
from django.db import connection

from steady_queue_core.errors import TaskCancelled
from steady_queue_core.processes.base.thread_interrupt import (
    TaskInterrupted,
    interrupt_task,
    is_within,
)
from steady_queue_core.processes.worker import interruptions as module
from steady_queue_core.processes.worker import time_outs
from steady_queue_core.processes.worker.interruptions import Interruptions


class Runner:
    """A thread that runs one job after the other, each for a moment, as a worker's threads do."""

    def __init__(self) -> None:
        self.interruptions = Interruptions()
        self.current, self.hit, self.stray = 0, 0, 0
        self.stopped = False
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        for job in count(1):
            if self.stopped:
                return
            try:
                self._run(job)
                sum(range(200))  # What is between two jobs must not be interrupted.
            except TaskCancelled:
                self.stray += 1

    def _run(self, job: int) -> None:
        interruptions = self.interruptions
        try:
            interruptions.enter(job)
            try:
                self.current = job
                sum(range(200))
            except TaskCancelled:
                pass
            was_sent: object = interruptions.leave(job)
        except TaskCancelled:
            interruptions.leave(job)
            was_sent = True
        self.hit += bool(was_sent)


@contextmanager
def running() -> Iterator[Runner]:
    runner = Runner()
    runner.thread.start()
    try:
        yield runner
    finally:
        runner.stopped = True
        runner.thread.join(10)


def test_an_interruption_that_comes_too_late_hits_no_other_job() -> None:
    with running() as runner:
        end = time.monotonic() + 3
        while time.monotonic() < end and runner.thread.is_alive():
            runner.interruptions.interrupt(runner.current)
    assert not runner.thread.is_alive()
    assert runner.stray == 0
    assert runner.hit > 10
    assert not runner.interruptions._sent
    assert not runner.interruptions._threads


def test_an_interruption_on_its_way_is_taken_back_by_the_thread_that_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    taken_back: list[int] = []
    monkeypatch.setattr(module, "raise_in", lambda thread, kind: sent.append(thread))
    monkeypatch.setattr(module, "clear_exception", taken_back.append)
    interruptions, here = Interruptions(), threading.get_ident()
    interruptions.enter(1)
    interruptions.interrupt(1)
    interruptions.interrupt(1)  # It is sent but once.
    assert (sent, taken_back) == ([here], [])
    assert interruptions.leave(1) is TaskCancelled
    assert taken_back == [here]
    assert interruptions.leave(1) is None
    interruptions.enter(1)
    assert interruptions.leave(1) is None
    assert taken_back == [here]


def test_a_job_that_runs_nowhere_is_not_interrupted() -> None:
    interruptions = Interruptions()
    interruptions.interrupt(7)
    interruptions.enter(8)
    interruptions.interrupt(7)
    assert interruptions.leave(8) is None


#: What stands for code that must not be interrupted: it is told by the name of the module.
WAIT = "def wait(entered, go_on):\n    entered.set()\n    assert go_on.wait(10)\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name",
    [
        "django.db.backends.some",
        "logging",
        "logging.handlers",
        "importlib._bootstrap",
        time_outs.__name__,
    ],
)
def test_nothing_is_raised_inside_code_that_must_not_be_interrupted(name: str) -> None:
    namespace: dict[str, Any] = {"__name__": name}
    exec(WAIT, namespace)
    interruptions, entered, go_on = Interruptions(), threading.Event(), threading.Event()
    told: list[str] = []

    def run() -> None:
        interruptions.enter(1)
        try:
            namespace["wait"](entered, go_on)
            told.append("came out")
            while True:
                time.sleep(0.001)
        except TaskCancelled:
            told.append("cancelled")
        told.append(str(interruptions.leave(1) is TaskCancelled))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert entered.wait(5)
    interruptions.interrupt(1)
    interruptions.interrupt(1)
    thread.join(0.1)  # It would have been raised by now.
    go_on.set()
    thread.join(5)
    assert told == ["came out", "cancelled", "True"]


@pytest.mark.django_db
def test_the_next_statement_is_refused_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    monkeypatch.setattr(module, "is_within", lambda thread, *packages: True)
    monkeypatch.setattr(module, "connections_of", lambda thread: [connection])
    interruptions = Interruptions()
    interruptions.enter(1)
    interruptions.interrupt(1)
    with connection.cursor() as cursor:
        with pytest.raises(TaskCancelled):
            cursor.execute("SELECT 1")
        cursor.execute("SELECT 1")  # It may be a rollback.
    assert interruptions.leave(1) is TaskCancelled
    assert not [each for each in connection.execute_wrappers if isinstance(each, module.Refusal)]


@pytest.mark.django_db
def test_a_refusal_takes_the_place_of_no_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    monkeypatch.setattr(module, "is_within", lambda thread, *packages: True)
    monkeypatch.setattr(module, "connections_of", lambda thread: [connection])
    before, interruptions = list(connection.execute_wrappers), Interruptions()
    interruptions.enter(1)
    with connection.execute_wrapper(lambda execute, *args: execute(*args)):
        interruptions.interrupt(1)
    with pytest.raises(TaskCancelled), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert interruptions.leave(1) is TaskCancelled
    assert connection.execute_wrappers == before


def wait_for_the_lock_of_a_log(
    interruptions: Interruptions, interrupt: Callable[[threading.Thread], None]
) -> list[str]:
    """Interrupt a thread that writes to a log, by ``interrupt``, while another one holds the lock;
    return what that thread has told."""
    handler = logging.NullHandler()
    handler.lock = threading.RLock()
    handler.handle = partial(logging.Handler.handle, handler)  # type: ignore[method-assign]
    told: list[str] = []
    may_end = threading.Event()

    def run() -> None:
        interruptions.enter(1)
        with suppress(TaskCancelled, TaskInterrupted):
            handler.handle(logging.makeLogRecord({}))
            told.append("written")
            while not may_end.is_set():
                time.sleep(0.001)
        interruptions.leave(1)

    thread = threading.Thread(target=run, daemon=True)
    with handler.lock:
        thread.start()
        while not is_within(cast(int, thread.ident), "logging"):
            time.sleep(0.001)
        interrupt(thread)
    # It is not held by a thread that goes on, or has ended, without giving it back.
    assert handler.lock.acquire(timeout=5)
    handler.lock.release()
    may_end.set()
    thread.join(5)
    return told


@pytest.mark.django_db
def test_who_is_interrupted_while_it_waits_for_the_lock_of_a_log_gives_it_back() -> None:
    interruptions = Interruptions()
    told = wait_for_the_lock_of_a_log(interruptions, lambda thread: interruptions.interrupt(1))
    assert told == ["written"]


def test_a_task_that_is_broken_off_gives_the_lock_of_a_log_back() -> None:
    assert wait_for_the_lock_of_a_log(Interruptions(), interrupt_task) == ["written"]


def test_a_task_is_interrupted_within_its_python_code() -> None:
    interruptions, began = Interruptions(), threading.Event()
    ended: list[BaseException] = []

    def run() -> None:
        interruptions.enter(1)
        began.set()
        try:
            while True:
                time.sleep(0.001)
        except TaskCancelled as error:
            ended.append(error)
        interruptions.leave(1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert began.wait(5)
    interruptions.interrupt(1)
    thread.join(5)
    assert isinstance(ended[0], TaskCancelled)
    with pytest.raises(IndexError):
        ended[1]
