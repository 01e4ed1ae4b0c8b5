"""Child processes that tasks fork, which must leave the queue alone."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress

from ..base.forking import flush_output


def end_if_copy(owner: int, error: BaseException | None = None) -> None:
    """Exit the calling process if it is a forked copy of the worker, whose pid is ``owner``.

    A task that forks returns, or raises ``error``, in both processes. The copy must not touch
    anything that it shares with the worker: the claim, the journal, or a connection, which closing
    would end for both.
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
    """Terminate the daemonic processes that tasks have left behind, as Python does on exit."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for child in multiprocessing.active_children():
            if child.daemon:
                child.terminate()
