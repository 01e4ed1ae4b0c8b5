"""Tells the project of stored outcomes, apart from the thread that stores them."""

from __future__ import annotations

import logging
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from threading import Thread

from ..compat import TaskResult, task_finished
from ..dialects import Ending, Outcome
from ..logging import OF_TASKS, about
from ..results import send
from ..signals import task_retried, tell
from .attempt import Done
from .connections import tidy_connections
from .facts import milliseconds

logger = logging.getLogger(OF_TASKS)


class Notifier:
    """Sends signals of outcomes from a thread of its own: a slow receiver delays nothing else."""

    def __init__(self) -> None:
        self._batches: SimpleQueue[list[Done] | None] = SimpleQueue()
        work = partial(copy_context().run, self._work)
        self._thread = Thread(target=work, name="steady-queue-notifier", daemon=True)
        self._thread.start()

    def tell(self, stored: list[Done]) -> None:
        """Queue the signals of outcomes that were stored."""
        self._batches.put(stored)

    def stop(self, seconds: float) -> None:
        """Send what is queued, for at most ``seconds``."""
        self._batches.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            for done in batch:
                announce(done)
            tidy_connections()


def announce(done: Done) -> None:
    """Send ``task_finished`` for a stored outcome that ended its job, ``task_retried`` for one that
    did not."""
    if done.result is None:
        return
    _log_end(done.result, done.outcome)
    sender = type(done.backend)
    if done.outcome.ending is Ending.RETRIED:
        delay = timedelta(seconds=done.outcome.delay)
        tell(task_retried, sender, task_result=done.result, delay=delay, error=done.error)
        return
    if done.error is None:
        send(task_finished, sender, done.result)
        return
    try:
        raise done.error
    except BaseException:
        # Receivers, Django's own log among them, look at the exception being handled.
        send(task_finished, sender, done.result)


def _log_end(result: TaskResult, outcome: Outcome) -> None:
    if outcome.ending is Ending.RETRIED or not logger.isEnabledFor(logging.INFO):
        return  # Of a retry the attempt itself has logged more than is known here.
    task = result.task
    wait = milliseconds(result.enqueued_at, result.last_attempted_at)
    duration = milliseconds(result.last_attempted_at, result.finished_at)
    logger.info(
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
