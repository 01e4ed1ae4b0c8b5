"""The signals of Steady Queue, in addition to those of the task framework.

``docs/signals.md`` lists their payloads. Receivers must accept ``**kwargs``: payloads may grow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.db import transaction
from django.dispatch import Signal as Signal

from .logging import about, get_logger
from .project_code import is_meant_for_us

logger = get_logger("steady_queue")

Messenger = Callable[[Callable[[], object]], object]


class ProcessLifecycle:
    """The sender of signals about processes."""


class InternalErrors:
    """The sender of the signal about errors of the queue itself."""


class QueueLifecycle:
    """The sender of signals about queues."""


class Recurring:
    """The sender of signals about recurring tasks."""


#: A process has registered. Sent in that process, before it starts to work.
process_started = Signal()
#: A process begins to stop, for whatever reason. Its tasks may still be running.
process_stopping = Signal()
#: A process has stopped working, with the ``error`` that ended it, if any.
process_stopped = Signal()
#: A supervisor has replaced a process that ended.
process_restarted = Signal()
#: The heartbeat of a process expired, and its claims were revoked.
process_pruned = Signal()

#: A task process begins to work, before its first job. Sent in that process.
task_process_started = Signal()
#: A task process has ended its work, and exits.
task_process_stopped = Signal()

#: A worker or dispatcher has looked for jobs.
process_polled = Signal()
#: The heartbeat of a process is stored.
process_beat = Signal()
#: A worker has claimed jobs.
jobs_claimed = Signal()
#: A worker has stored what has become of jobs.
jobs_settled = Signal()
#: A dispatcher has moved jobs that are due.
jobs_dispatched = Signal()
#: A dispatcher has made blocked jobs ready whose permits had been lost.
jobs_unblocked = Signal()

#: A queue was paused. ``changed`` is false if it was paused already.
queue_paused = Signal()
#: A queue was resumed. ``changed`` is false if it was not paused.
queue_resumed = Signal()

#: A thread or process of the queue met an error of its own, other than an outage. It is logged.
internal_error = Signal()

#: A slot of a recurring task was enqueued.
recurring_enqueued = Signal()
#: Slots of a recurring task were missed, because no scheduler was running.
recurring_missed = Signal()

#: An attempt failed, and the job will be retried.
task_retried = Signal()
#: An attempt was lost: its process ended or stopped its heartbeat.
task_lost = Signal()
#: Jobs were cancelled while they waited.
task_cancelled = Signal()
#: Jobs were deleted before they ran, or after they failed.
task_discarded = Signal()


#: Sends the signals of the present context, if that must not wait for receivers.
_messenger: ContextVar[Messenger | None] = ContextVar("steady_queue_messenger", default=None)


def send_through(messenger: Messenger | None) -> None:
    """Have ``messenger`` call what sends the signals of the present context from now on."""
    _messenger.set(messenger)


def send(signal: Signal, sender: type, **payload: Any) -> None:
    """Send a signal to its receivers, each by itself, whatever the others raise; log those that do.

    Unlike ``send_robust()``, also receivers that call ``sys.exit()``, and in the queue's own log:
    Django's is not shown unless the project configures it.
    """
    if not signal.receivers:
        return
    if (messenger := _messenger.get()) is not None:
        messenger(partial(_send_now, signal, sender, payload))
    else:
        _send_now(signal, sender, payload)


def _send_now(signal: Signal, sender: type, payload: Mapping[str, Any]) -> None:
    dispatcher: Any = signal
    functions, coroutines = dispatcher._live_receivers(sender)
    for receiver in functions:
        try:
            receiver(signal=signal, sender=sender, **payload)
        except BaseException as error:
            _log_failure(receiver, error)
    for receiver in coroutines:
        call = partial(receiver, signal=signal, sender=sender, **payload)
        if (failure := async_to_sync(_failure_of)(call)) is not None:
            _log_failure(receiver, failure)


async def _failure_of(call: Callable[[], Awaitable[object]]) -> BaseException | None:
    """Await a receiver; return what it raises: it must not reach the loop, where tasks run."""
    try:
        await call()
    except BaseException as error:
        return error
    return None


def _log_failure(receiver: Any, error: BaseException) -> None:
    if is_meant_for_us(error):
        raise error
    name = getattr(receiver, "__qualname__", repr(receiver))
    logger.error(
        "The receiver %s of a signal failed: %s",
        name,
        error,
        exc_info=error,
        extra=about("signal.receiver_failed", receiver=name, error_type=type(error).__name__),
    )


def send_after_commit(signal: Signal, sender: type, using: str, **payload: Any) -> None:
    """Send a signal when the caller's transaction on the database ``using`` commits."""
    if signal.receivers:
        transaction.on_commit(partial(send, signal, sender, using=using, **payload), using=using)
