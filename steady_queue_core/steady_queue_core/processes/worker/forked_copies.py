"""Processes that tasks fork: they are no part of the queue."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress


def end_if_copy(owner: int, error: BaseException | None = None) -> None:
    """End the calling process, whose task has returned or raised ``error``, unless it is ``owner``.

    A task that forks comes back twice. The copy must touch nothing that it shares with the worker:
    neither the claim nor the journal, nor a connection, which closing would end for both.
    """
    if os.getpid() == owner:
        return
    code = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        code = error.code or 0
    elif error is not None:
        with suppress(Exception):
            traceback.print_exception(error)
    flush_output()
    os._exit(code & 0xFF)


def end_daemons() -> None:
    """Terminate the daemonic processes that tasks have left, as Python does at its own end."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for child in multiprocessing.active_children():
            if child.daemon:
                child.terminate()


def flush_output() -> None:
    """Write what is buffered."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
