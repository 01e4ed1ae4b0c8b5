"""The signals of Steady Queue, beside those of the task framework.

Their payloads are in ``docs/signals.md``. Receivers take ``**kwargs``: a payload may grow.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django import dispatch
from django.db import transaction

from .logging import about, get_logger

logger = get_logger("steady_queue")


class Signal(dispatch.Signal):
    """A signal whose failing receivers are seen in the queue's own log: Django's is shown nowhere
    unless the project says so."""

    def _log_robust_failure(self, receiver: Any, err: Exception) -> None:
        name = getattr(receiver, "__qualname__", repr(receiver))
        logger.error(
            "The receiver %s of a signal failed: %s",
            name,
            err,
            exc_info=err,
            extra=about("signal.receiver_failed", receiver=name, error_type=type(err).__name__),
        )


class ProcessLifecycle:
    """The sender of signals about processes."""


class QueueLifecycle:
    """The sender of signals about queues."""


class Recurring:
    """The sender of signals about recurring tasks."""


#: A process has registered; sent in that process, before it does its work.
process_started = Signal()
#: A process was asked to stop, or ends for another reason; its tasks may still be running.
process_stopping = Signal()
#: A process has done its work; with the ``error`` that ended it, if there was one.
process_stopped = Signal()
#: A supervisor has started a process in the place of one that ended.
process_restarted = Signal()
#: A process gave no heartbeat; its claims were taken away.
process_pruned = Signal()

#: A queue was paused, or was to be and is already: see ``changed``.
queue_paused = Signal()
#: A queue was resumed, or was to be and was not paused: see ``changed``.
queue_resumed = Signal()

#: A slot of a recurring task was enqueued.
recurring_enqueued = Signal()
#: Slots of a recurring task were passed over: no scheduler was running.
recurring_missed = Signal()

#: An attempt failed and the job runs again.
task_retried = Signal()
#: The process that ran a job has ended or gone silent; the attempt is lost.
task_lost = Signal()
#: Jobs were deleted before they ran, or after they had failed.
task_discarded = Signal()


def send(signal: Signal, sender: type, **payload: Any) -> None:
    """Send a signal. A receiver that raises is logged, with its name, and no more."""
    if not signal.receivers:
        return
    try:
        signal.send_robust(sender=sender, **payload)
    except BaseException:  # A receiver that calls sys.exit() must not end a process.
        logger.exception("A receiver of a signal failed", extra=about("signal.receiver_failed"))


def send_after_commit(signal: Signal, sender: type, using: str, **payload: Any) -> None:
    """Send a signal when the caller's transaction on the database ``using`` has committed."""
    if signal.receivers:
        transaction.on_commit(partial(send, signal, sender, using=using, **payload), using=using)
