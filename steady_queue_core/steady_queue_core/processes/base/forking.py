"""Forking a process: before, after, and what its exit status says."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

from .posix_signals import OWN_SIGNALS


def fork() -> int:
    """Fork the calling process, which has one thread. Raises ``OSError``.

    In the child our signals stay blocked until it has handlers of its own: a signal must reach
    the parent's handlers or the child's, not the parent's inside the child.
    """
    # Output that is buffered at the fork would be written twice.
    flush_output()
    _keep_memory_shared()
    hold_signals()
    try:
        pid = os.fork()
    except OSError:
        accept_signals()
        raise
    if pid:
        accept_signals()
    return pid


def accept_signals() -> None:
    """Unblock our signals, in a process that has its handlers."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OWN_SIGNALS)


def hold_signals() -> None:
    """Block our signals: they arrive when ``accept_signals`` is called, here or by the program that
    replaces this one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, OWN_SIGNALS)


def leave_input() -> None:
    """Let the standard input be empty: it is the parent's."""
    with suppress(OSError, ValueError, AttributeError):  # There may be none.
        number = sys.stdin.fileno()
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, number)
        os.close(empty)


def flush_output() -> None:
    """Flush the standard output and standard error."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def describe_exit(code: int) -> str:
    """Return what an exit code says, which is negative for the signal that killed the process."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _keep_memory_shared() -> None:
    """Let no later garbage collection touch what exists now: it writes to each object that it
    examines, and each page that a child writes to becomes memory of its own."""
    gc.collect()
    gc.freeze()
