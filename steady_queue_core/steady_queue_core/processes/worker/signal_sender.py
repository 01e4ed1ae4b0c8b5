"""Sends the signals of stored outcomes from a thread of its own."""

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
from ...models.operations.cancel import EXCEPTION as CANCELLED
from ...project_code import contained
from ...signals import send, task_retried
from ...tasks.task_signals import send_task_signal
from ..base.connections import tidy_connections
from ..base.log_context import milliseconds
from .attempt import RunResult
from .error_frames import forget_frames
from .follow_up_signals import has_follow_ups, tell_of_follow_ups
from .forked_copies import end_if_copy
from .losses import tell_of_loss
from .prefetch import WEIGHT

logger = get_logger("steady_queue.worker")
task_logger = get_logger(OF_TASKS)

#: Most signals that may be queued even if they are sent fast, and even if they are sent slowly.
MOST_WAITING, FEW = 2000, 20
#: Most seconds that sending the queued signals may take.
HORIZON = 1.0
#: Seconds that a running receiver is given once the time is over.
LAST_GRACE = 0.25


class SignalSender:
    """Sends the signals of stored outcomes, so that a slow receiver delays neither the storing of
    outcomes nor the heartbeats.

    If receivers take longer than the tasks, the sender falls ``behind`` by about a second; the
    worker then claims nothing until ``wake()`` reports that it has caught up.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake, self._pid = wake, os.getpid()
        self._batches: SimpleQueue[list[RunResult] | None] = SimpleQueue()
        #: Number of signals that were queued, and that were sent.
        self._queued = self._sent = 0
        #: Running mean of the seconds that sending a signal takes.
        self._mean = 0.0
        self._keeps_waiting = self._given_up = self._logged_dropped = False
        work = partial(copy_context().run, self._work)
        self._thread = Thread(target=work, name="steady-queue-signals", daemon=True)
        self._thread.start()

    def put(self, stored: list[RunResult]) -> None:
        """Queue the signals of results whose outcomes are stored."""
        batch = [each for each in stored if each.task_result or has_follow_ups(each.outcome)]
        if batch:
            self._queued += len(batch)
            self._batches.put(batch)

    @property
    def behind(self) -> bool:
        """Whether so many signals are queued that the worker should not claim more jobs."""
        # Set before the check: a signal that is sent after it calls wake().
        self._keeps_waiting = True
        self._keeps_waiting = self._is_behind
        return self._keeps_waiting

    @property
    def _is_behind(self) -> bool:
        waiting = self._queued - self._sent
        return waiting > MOST_WAITING or (waiting > FEW and waiting * self._mean > HORIZON)

    def stop(self, seconds: float) -> None:
        """Send the queued signals for at most ``seconds``, then log how many were not sent."""
        self._batches.put(None)
        self._thread.join(max(0.0, seconds))
        self._given_up = True
        # A receiver may be running: let it end.
        self._thread.join(LAST_GRACE if seconds > 0 else 0.0)
        self.log_dropped()

    def log_dropped(self) -> None:
        """Log once how many signals will not be sent because the process ends."""
        self._given_up = True
        dropped = self._queued - self._sent
        if dropped and not self._logged_dropped:
            self._logged_dropped = True
            logger.warning(
                "%d signals of tasks that have ended were not sent: receivers took too long, "
                "recently %.0f ms per signal",
                dropped,
                self._mean * 1000,
                extra=about("worker.signals_dropped", jobs=dropped),
            )

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            while batch and not self._given_up:
                self._send(batch.pop(0))
            if self._given_up:
                return
            tidy_connections()

    def _send(self, result: RunResult) -> None:
        began = time.monotonic()
        with suppress(Exception):  # The log may not be writable.
            send_signals(result)
        end_if_copy(self._pid)
        self._sent += 1
        self._mean += (time.monotonic() - began - self._mean) * WEIGHT
        if self._keeps_waiting and not self._is_behind:
            self._keeps_waiting = False
            self._wake()


def send_signals(result: RunResult) -> None:
    """Send ``task_enqueued`` for what was stored with an outcome, and ``task_finished`` if that
    ended its job, or ``task_retried`` if it did not; tell the error reporter of a job that failed.

    Records that receivers log (Django's own receiver, too) carry the task of the job.
    """
    task_result, outcome = result.task_result, result.outcome
    if outcome.sequel is not None:
        tell_of_follow_ups(outcome)
    if task_result is None:
        return
    path = task_result.task.module_path
    former = running_task.set(RunningTask(path, task_result.id, outcome.attempts))
    try:
        tell_of_loss(result)
        _log_end(task_result, outcome)
        _send(task_result, result)
    finally:
        running_task.reset(former)
        forget_frames(result.error)


def _send(task_result: TaskResult, result: RunResult) -> None:
    sender = type(result.backend)
    if result.outcome.ending is Ending.RETRIED:
        delay = timedelta(seconds=result.outcome.delay)
        send(task_retried, sender, task_result=task_result, delay=delay, error=result.error)
        return
    if result.error is None:
        send_task_signal(task_finished, sender, task_result)
        return
    trace = result.error.__traceback__
    try:
        raise result.error
    except BaseException:
        # Receivers (Django's own logs it) look at the exception that is being handled.
        send_task_signal(task_finished, sender, task_result)
        _report(result, result.error, task_result)
    finally:
        result.error.__traceback__ = trace  # Without this frame, which knows the error.


def _report(result: RunResult, error: BaseException, task_result: TaskResult) -> None:
    """Tell the backend's error reporter, if there is one, of a job that has failed for good and
    was not cancelled."""
    if result.outcome.exception_class == CANCELLED:
        return
    try:
        if result.backend is not None and result.backend.error_reporter is not None:
            contained(result.backend.error_reporter, error, task_result)
    except Exception:
        logger.exception(
            "The error reporter failed for task %s",
            task_result.id,
            extra=about("task.not_reported", task_id=task_result.id),
        )


def _log_end(result: TaskResult, outcome: Outcome) -> None:
    if outcome.ending is Ending.RETRIED or not task_logger.isEnabledFor(logging.INFO):
        return  # The attempt itself has logged a retry, with more details.
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
