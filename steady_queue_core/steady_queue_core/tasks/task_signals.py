"""Sends the signals of the task framework."""

from __future__ import annotations

import logging

from asgiref.sync import sync_to_async
from django.dispatch import Signal

from ..compat import TaskResult, framework_signals, task_enqueued, task_finished, task_started
from ..log_readers import is_read
from ..signals import send

#: The framework's own receivers, which only log, and their level for a task that has not failed.
_LOGGED = {
    task_enqueued: (framework_signals.log_task_enqueued, logging.DEBUG),
    task_started: (framework_signals.log_task_started, logging.INFO),
    task_finished: (framework_signals.log_task_finished, logging.INFO),
}


class Audience:
    """Whether a receiver does anything when a task has not failed. The framework's own, which only
    logs, does nothing while nobody reads its records."""

    def __init__(self) -> None:
        #: Whether somebody reads the framework's records of a level.
        self._is_read: dict[int, bool] = {}

    def look_again(self) -> None:
        """Forget who read the framework's records."""
        self._is_read.clear()

    def hears(self, signal: Signal) -> bool:
        """Whether somebody receives a signal, or read its records the first time it was asked."""
        receivers = signal.receivers
        if len(receivers) != 1:
            return bool(receivers)
        receiver, level = _LOGGED[signal]
        if receivers[0][0][0] != id(receiver):
            return True
        found = self._is_read.get(level)
        if found is None:
            found = self._is_read[level] = is_read(framework_signals.logger, level)
        return found


def send_task_signal(signal: Signal, sender: type, result: TaskResult) -> None:
    """Send a signal of the task framework; log the receivers that raise."""
    send(signal, sender, task_result=result)


async def asend_task_signal(signal: Signal, sender: type, result: TaskResult) -> None:
    """Async version of :func:`send_task_signal`."""
    receivers = signal.receivers
    if not receivers or (len(receivers) == 1 and not receivers[0][-1]):
        # Django's own receiver only logs, which is not worth switching threads.
        send_task_signal(signal, sender, result)
        return
    await sync_to_async(send_task_signal)(signal, sender, result)
