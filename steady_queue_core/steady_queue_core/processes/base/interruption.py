"""Breaking off tasks that run in threads, which nobody can kill."""

from __future__ import annotations

import ctypes
from threading import Thread


class TaskInterrupted(BaseException):
    """Raised within a task, at its next step in Python, to end it: the queue stops, or its worker
    has ended. A task that catches it should let it pass."""


def interrupt(thread: Thread) -> None:
    """Have ``TaskInterrupted`` raised in a thread: now, or when it comes back from a call to C. It
    takes no further step of its task before that."""
    if thread.ident is not None and thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(TaskInterrupted)
        )
