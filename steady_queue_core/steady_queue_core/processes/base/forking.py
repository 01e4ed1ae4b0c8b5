"""Forking a process: before, after, its exit, and what its exit status says."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .posix_signals import OWN_SIGNALS

#: Seconds that what tasks have registered and started gets to end.
EXIT_TIME = 3.0
#: Seconds that the output gets, at an exit that is to be at once.
FLUSH_TIME = 0.25


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


def disown_exit() -> None:
    """Leave to the parent, in a process that was just forked, what is to be done at its exit:
    functions of ``atexit``, executors, and processes of ``multiprocessing``."""
    atexit_module: Any = atexit
    atexit_module._clear()
    multiprocessing: Any = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        multiprocessing._children.clear()
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:
        util._finalizer_registry.clear()
        atexit.register(util._exit_function)


def do_own_exit(end_now: Callable[[], object]) -> None:
    """Do what is to be done at the exit of this process; ``end_now()`` ends it if that takes too
    long."""
    threads: Any = threading
    functions: Any = atexit

    def watch() -> None:
        time.sleep(EXIT_TIME)
        end_now()

    threading.Thread(target=watch, daemon=True).start()
    # In the order of Python: first executors and threads, which may still use anything.
    for each in (threads._shutdown, functions._run_exitfuncs):
        with suppress(BaseException):
            each()


def flush_soon() -> None:
    """Flush the output, unless somebody else is at it, or nobody reads it."""
    # In another thread: a signal may have arrived in the middle of a print().
    flushing = threading.Thread(target=flush_output, daemon=True)
    flushing.start()
    flushing.join(FLUSH_TIME)
