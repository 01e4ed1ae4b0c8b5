"""What Python does when a process exits, for those that are forked and must not unwind into their
parent's code: functions of ``atexit``, executors, processes of ``multiprocessing``."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .forking import flush_output

#: Seconds that what tasks have registered and started gets to end.
EXIT_TIME = 3.0
#: Seconds that the output gets, at an exit that is to be at once.
FLUSH_TIME = 0.25


def disown_exit() -> None:
    """Leave to the parent, in a process that was just forked, what is to be done at its exit."""
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
