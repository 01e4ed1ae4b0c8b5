"""Sends the signals of the task framework."""

from __future__ import annotations

import logging

from asgiref.sync import sync_to_async
from django.dispatch import Signal

from ..compat import (
    TaskResult,
    TaskResultStatus,
    framework_signals,
    task_enqueued,
    task_finished,
    task_started,
)
from ..log_readers import is_read
from ..logging import about, get_logger

logger = get_logger("steady_queue")

#: The framework's own receivers, which only log, and their level for a task that has not failed.
_LOGGED = {
    task_enqueued: (framework_signals.log_task_enqueued, logging.DEBUG),
    task_started: (framework_signals.log_task_started, logging.INFO),
    task_finished: (framework_signals.log_task_finished, logging.INFO),
}


def is_heard(signal: Signal) -> bool:
    """Whether a receiver does anything when a task has not failed. The framework's own, which only
    logs, does nothing while nobody reads its records."""
    receivers = signal.receivers
    if len(receivers) != 1:
        return bool(receivers)
    receiver, level = _LOGGED[signal]
    [entry] = receivers
    return entry[0][0] != id(receiver) or is_read(framework_signals.logger, level)


def send_task_signal(signal: Signal, sender: type, result: TaskResult) -> None:
    """Send a signal of the task framework, if it is heard; log the receivers that raise."""
    if result.status is not TaskResultStatus.FAILED and not is_heard(signal):
        return
    try:
        signal.send_robust(sender=sender, task_result=result)
    except BaseException:  # A receiver that calls sys.exit() must not end a worker.
        logger.exception(
            "A receiver of a task signal failed for task %s",
            result.id,
            extra=about("signal.receiver_failed", task_id=result.id),
        )


async def asend_task_signal(signal: Signal, sender: type, result: TaskResult) -> None:
    """Async version of :func:`send_task_signal`."""
    receivers = signal.receivers
    if not receivers or (len(receivers) == 1 and not receivers[0][-1]):
        # Django's own receiver only logs, which is not worth switching threads.
        send_task_signal(signal, sender, result)
        return
    # Not by asend_robust(): a receiver's SystemExit would end the event loop.
    await sync_to_async(send_task_signal)(signal, sender, result)
