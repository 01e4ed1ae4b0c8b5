"""Tells the project of stored outcomes, apart from the thread that stores them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from threading import Thread

from ...compat import TaskResult, task_finished
from ...dialects import Ending, Outcome
from ...logging import OF_TASKS, RunningTask, about, get_logger, running_task
from ...signals import send, task_retried
from ...tasks.results import send_task_signal
from ..base.connections import tidy_connections
from ..base.log_context import milliseconds
from .attempt import Done
from .forked_copies import end_if_copy
from .throughput import WEIGHT

logger = get_logger("steady_queue.worker")
task_logger = get_logger(OF_TASKS)

#: Signals that may wait however fast they are sent, and however slowly.
MOST_WAITING, FEW = 2000, 20
#: Seconds that what waits may take to send.
HORIZON = 1.0
#: Seconds that a receiver may go on when there is no more time.
LAST_GRACE = 0.25


class SignalSender:
    """Sends signals of outcomes from a thread of its own: a slow receiver keeps nobody from storing
    them, or from giving heartbeats.

    Where receivers take longer than the tasks, it is ``behind`` by some second, and the worker is
    to claim nothing; ``wake()`` is called when it has caught up.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake, self._pid = wake, os.getpid()
        self._batches: SimpleQueue[list[Done] | None] = SimpleQueue()
        #: How many signals were to be sent, and were.
        self._told = self._sent = 0
        #: What a signal takes, of late.
        self._seconds = 0.0
        self._keeps_waiting = self._given_up = self._told_dropped = False
        work = partial(copy_context().run, self._work)
        self._thread = Thread(target=work, name="steady-queue-notifier", daemon=True)
        self._thread.start()

    def tell(self, stored: list[Done]) -> None:
        """Queue the signals of outcomes that were stored."""
        batch = [done for done in stored if done.result is not None]
        self._told += len(batch)
        self._batches.put(batch)

    @property
    def behind(self) -> bool:
        """Whether so much is queued that no more should be added soon."""
        # In this order: what is sent after the look wakes us.
        self._keeps_waiting = True
        self._keeps_waiting = self._is_behind
        return self._keeps_waiting

    @property
    def _is_behind(self) -> bool:
        waiting = self._told - self._sent
        return waiting > MOST_WAITING or (waiting > FEW and waiting * self._seconds > HORIZON)

    def stop(self, seconds: float) -> None:
        """Send what is queued, for at most ``seconds``; tell how much was not sent."""
        self._batches.put(None)
        self._thread.join(max(0.0, seconds))
        self._given_up = True
        # The one that is being sent has begun: it may yet end.
        self._thread.join(LAST_GRACE if seconds > 0 else 0.0)
        self.tell_dropped()

    def tell_dropped(self) -> None:
        """Log how many signals will not be sent, once: the process ends."""
        self._given_up = True
        dropped = self._told - self._sent
        if dropped and not self._told_dropped:
            self._told_dropped = True
            logger.warning(
                "%d signals of tasks that have ended were not sent: receivers took too long, "
                "%.0f ms for each of late",
                dropped,
                self._seconds * 1000,
                extra=about("worker.signals_dropped", jobs=dropped),
            )

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            for done in batch:
                if self._given_up:
                    return
                self._announce(done)
            tidy_connections()

    def _announce(self, done: Done) -> None:
        began = time.monotonic()
        with suppress(Exception):  # A log that cannot be written.
            announce(done)
        end_if_copy(self._pid)
        self._sent += 1
        self._seconds += (time.monotonic() - began - self._seconds) * WEIGHT
        if self._keeps_waiting and not self._is_behind:
            self._keeps_waiting = False
            self._wake()


def announce(done: Done) -> None:
    """Send ``task_finished`` for a stored outcome that ended its job, ``task_retried`` for one that
    did not. What receivers log, Django's among them, belongs to the task."""
    if done.result is None:
        return
    result, outcome = done.result, done.outcome
    ended = running_task.set(RunningTask(result.task.module_path, result.id, outcome.attempts))
    try:
        _log_end(result, outcome)
        _send(result, done)
    finally:
        running_task.reset(ended)


def _send(result: TaskResult, done: Done) -> None:
    sender = type(done.backend)
    if done.outcome.ending is Ending.RETRIED:
        delay = timedelta(seconds=done.outcome.delay)
        send(task_retried, sender, task_result=result, delay=delay, error=done.error)
        return
    if done.error is None:
        send_task_signal(task_finished, sender, result)
        return
    try:
        raise done.error
    except BaseException:
        # Receivers, Django's own log among them, look at the exception being handled.
        send_task_signal(task_finished, sender, result)


def _log_end(result: TaskResult, outcome: Outcome) -> None:
    if outcome.ending is Ending.RETRIED or not task_logger.isEnabledFor(logging.INFO):
        return  # Of a retry the attempt itself has logged more than is known here.
    task = result.task
    wait = milliseconds(result.enqueued_at, result.last_attempted_at)
    duration = milliseconds(result.last_attempted_at, result.finished_at)
    task_logger.info(
        "Task %s #%s %s in %.0f ms",
        task.module_path,
        result.id,
        outcome.ending.value,
        duration or 0.0,
        extra=about(
            f"task.{outcome.ending.value}",
            backend=result.backend,
            queue=task.queue_name,
            task=task.module_path,
            task_id=result.id,
            attempt=outcome.attempts,
            status=outcome.ending.value,
            wait_ms=wait,
            duration_ms=duration,
            error_type=outcome.exception_class or None,
        ),
    )
