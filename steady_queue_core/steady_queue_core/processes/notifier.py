"""Tells the project of stored outcomes, apart from the thread that stores them."""

from __future__ import annotations

from datetime import timedelta
from queue import SimpleQueue
from threading import Thread

from ..compat import task_finished
from ..dialects import Ending
from ..results import send
from ..signals import task_retried, tell
from .attempt import Done
from .connections import tidy_connections


class Notifier:
    """Sends signals of outcomes from a thread of its own: a slow receiver delays nothing else."""

    def __init__(self) -> None:
        self._batches: SimpleQueue[list[Done] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="steady-queue-notifier", daemon=True)
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
