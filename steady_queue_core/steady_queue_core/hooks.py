"""Hooks: functions of the project that run when a process of the queue starts, stops or exits, and
when it meets an error of its own.

::

    from steady_queue_core.hooks import on_worker_start

    @on_worker_start
    def load_the_model(process):
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from .signals import (
    Signal,
    internal_error,
    process_started,
    process_stopped,
    process_stopping,
    task_process_started,
    task_process_stopped,
)

FunctionT = TypeVar("FunctionT", bound=Callable[["ProcessInfo"], object])


@dataclass(frozen=True, kw_only=True)
class ProcessInfo:
    """The process in which a hook runs."""

    process_kind: str
    process_name: str
    pid: int
    hostname: str
    #: Alias of the database that the process serves.
    using: str
    #: The metadata in its row, such as a worker's ``queues`` and ``threads``.
    metadata: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class InternalError:
    """An error of the queue's own threads and processes."""

    error: BaseException
    #: The event in the log, such as ``"process.failed"``.
    event: str
    message: str
    #: The process that met it, or its worker thread, as far as it is known.
    process_name: str | None
    pid: int
    #: The other attributes of the log record.
    details: Mapping[str, Any]


ReceiverT = TypeVar("ReceiverT", bound=Callable[[InternalError], object])


class Hook:
    """Registers functions for one lifecycle event of one kind of process.

    They run in the order of their registration. An exception is logged, and neither stops the
    other functions nor the process.
    """

    def __init__(self, signal: Signal, kind: str) -> None:
        self.signal, self.kind = signal, kind

    def __call__(self, function: FunctionT) -> FunctionT:
        """Register ``function(process)``; for use as a decorator."""

        def receiver(**payload: Any) -> None:
            if payload["process_kind"] == self.kind:
                known = {each.name: payload[each.name] for each in fields(ProcessInfo)}
                function(ProcessInfo(**known))

        # Names a failing receiver in the log.
        receiver.__qualname__ = getattr(function, "__qualname__", repr(function))
        self.signal.connect(receiver, weak=False)
        return function


on_start, on_stop, on_exit = (
    Hook(signal, "supervisor") for signal in (process_started, process_stopping, process_stopped)
)
on_worker_start, on_worker_stop, on_worker_exit = (
    Hook(signal, "worker") for signal in (process_started, process_stopping, process_stopped)
)
on_task_process_start, on_task_process_exit = (
    Hook(signal, "task_process") for signal in (task_process_started, task_process_stopped)
)
on_dispatcher_start, on_dispatcher_stop, on_dispatcher_exit = (
    Hook(signal, "dispatcher") for signal in (process_started, process_stopping, process_stopped)
)
on_scheduler_start, on_scheduler_stop, on_scheduler_exit = (
    Hook(signal, "scheduler") for signal in (process_started, process_stopping, process_stopped)
)


def on_internal_error(function: ReceiverT) -> ReceiverT:
    """Register ``function(internal_error)``; for use as a decorator. It runs where the error is
    met. An exception in it is logged."""

    def receiver(**payload: Any) -> None:
        function(InternalError(**{each.name: payload[each.name] for each in fields(InternalError)}))

    receiver.__qualname__ = getattr(function, "__qualname__", repr(function))
    internal_error.connect(receiver, weak=False)
    return function
