"""The signals that a supervisor follows while it runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

#: Signals that are held back while a process is forked. Not every system has all of them.
STOP_SIGNALS = {
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
}

Handler = Callable[[int, FrameType | None], Any]

#: Handlers of ours, with those that they took the place of.
_installed: dict[signal.Signals, tuple[Handler, Any]] = {}


def graceful_signals() -> list[signal.Signals]:
    """Return the signals that ask for a graceful stop: HUP, which a closed terminal sends, is one
    unless whoever started us (nohup) has it ignored."""
    hangup = [each for each in STOP_SIGNALS if each.name == "SIGHUP"]
    followed = [each for each in hangup if signal.getsignal(each) is not signal.SIG_IGN]
    return [signal.SIGTERM, signal.SIGINT, *followed]


def is_quit(signum: int) -> bool:
    """Whether a signal asks for a stop at once."""
    return signum == getattr(signal, "SIGQUIT", None)


def install(handlers: Mapping[signal.Signals, Handler]) -> dict[signal.Signals, Any]:
    """Have ``handlers`` called for signals, and return those that were. For the main thread.

    Processes that tasks fork have the former ones: with ours, none would end when it is told to.
    """
    former = {signum: signal.signal(signum, handlers[signum]) for signum in handlers}
    _installed.clear()
    _installed.update({each: (handlers[each], former[each]) for each in handlers})
    _register_once()
    return former


@cache
def _register_once() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_hold_back, after_in_parent=_let_through, after_in_child=_be_as_before
        )


class _Mask(threading.local):
    """The signals that a thread held back before it forked."""

    former: Iterable[int] | None = None


_mask = _Mask()


def _hold_back() -> None:
    # One that comes before the child is as before would be lost: Python forgets it there.
    if _installed:
        _mask.former = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _let_through() -> None:
    if _mask.former is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _mask.former)
        _mask.former = None


def _be_as_before() -> None:
    for signum, (ours, former) in _installed.items():
        if signal.getsignal(signum) == ours:
            signal.signal(signum, signal.SIG_DFL if former is None else former)
    if _installed:
        # Its signals would wake us, not it.
        signal.set_wakeup_fd(-1)
    _installed.clear()
    _let_through()


@contextmanager
def handling(handler: Handler, wakeup_descriptor: int) -> Iterator[None]:
    """Have ``handler`` called for the stop signals, and a byte written for each signal, also
    when a child ends. Afterwards everything is as it was. For the main thread."""
    handlers: dict[signal.Signals, Handler] = dict.fromkeys(graceful_signals(), handler)
    if hasattr(signal, "SIGQUIT"):
        handlers |= {signal.SIGQUIT: handler, signal.SIGCHLD: lambda signum, frame: None}
    former_descriptor = signal.set_wakeup_fd(wakeup_descriptor, warn_on_full_buffer=False)
    former = install(handlers)
    try:
        yield
    finally:
        for signum, its_handler in former.items():
            # None: it was not installed from Python, and cannot be from here.
            if its_handler is not None:
                signal.signal(signum, its_handler)
        signal.set_wakeup_fd(former_descriptor)
        _installed.clear()
