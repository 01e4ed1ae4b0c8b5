"""Interrupts tasks that run in threads, by an asynchronous exception: threads cannot be killed."""

from __future__ import annotations

import ctypes
import sys
from threading import Thread

from ...project_code import Interruption

#: Code that takes locks in steps of Python: who is interrupted between having got one and the
#: ``try`` that gives it back keeps it, and everybody who writes to that log, or imports that
#: module, waits for ever. Whoever waits for such a lock would be interrupted just there.
LOCKING = ("logging", "importlib")


class TaskInterrupted(Interruption):
    """Raised inside a running task to end it, because the queue stops or its worker has ended. A
    task that catches it should raise it again."""


def interrupt(thread: Thread) -> None:
    """Raise ``TaskInterrupted`` in a thread before its next bytecode; if it is in a C call, when
    that returns."""
    if thread.ident is not None and thread.is_alive():
        raise_in(thread.ident, TaskInterrupted)


def interrupt_task(thread: Thread) -> None:
    """Do the same to a task, unless it is at work where locks are taken: then nothing happens until
    this is called again."""
    if thread.ident is not None and not is_within(thread.ident, *LOCKING):
        interrupt(thread)


def raise_in(thread: int, exception: type[BaseException]) -> None:
    """Raise an exception in the thread of this identifier, likewise."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(exception))


def is_within(thread: int, *packages: str) -> bool:
    """Whether code of these packages, or modules, is on the stack of the thread of this
    identifier."""
    begins = tuple(f"{package}." for package in packages)
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if f"{frame.f_globals.get('__name__')}.".startswith(begins):
            return True
        frame = frame.f_back
    return False


def clear_exception(thread: int) -> None:
    """Take back an exception that was to be raised in a thread and has not been."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)
