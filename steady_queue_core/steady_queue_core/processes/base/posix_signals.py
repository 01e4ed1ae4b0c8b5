"""Handling of POSIX signals in the supervisor and its processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any


def _those_here(*names: str) -> frozenset[signal.Signals]:
    """Return the signals of these names that this system has."""
    return frozenset(getattr(signal, name) for name in names if hasattr(signal, name))


#: Signals that are blocked during a fork.
STOP_SIGNALS = _those_here("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
#: Signals that the queue's processes have handlers for.
OWN_SIGNALS = STOP_SIGNALS | _those_here("SIGUSR1", "SIGUSR2", "SIGTTIN", "SIGTTOU")
#: Asks a supervisor that has new code to give its place to it; sent by a closed terminal as well.
HANGUP: Any = getattr(signal, "SIGHUP", None)

#: Ask each process to open its log files anew and tell what it does, or for its stacks.
REOPEN: Any = getattr(signal, "SIGUSR1", None)
STACKS: Any = getattr(signal, "SIGUSR2", None)
#: Ask a supervisor for one worker more, or fewer.
MORE: Any = getattr(signal, "SIGTTIN", None)
FEWER: Any = getattr(signal, "SIGTTOU", None)

Handler = Callable[[int, FrameType | None], Any]

#: Our handlers, with those that they replaced.
_installed: dict[signal.Signals, tuple[Handler, Any]] = {}


def graceful_signals() -> list[signal.Signals]:
    """Return the signals that ask for a graceful stop."""
    return [signal.SIGTERM, signal.SIGINT]


def hangup_signals() -> list[signal.Signals]:
    """Return HUP, unless there is none, or it was ignored from the start, as under nohup."""
    if HANGUP is None or signal.getsignal(HANGUP) is signal.SIG_IGN:
        return []
    return [HANGUP]


def unclaimed(*signals: signal.Signals | None) -> list[signal.Signals]:
    """Return those of ``signals`` that this system has, and that the project has no handler for."""
    return [
        each for each in signals if each is not None and signal.getsignal(each) is signal.SIG_DFL
    ]


def leave_alone(signum: int, frame: FrameType | None) -> None:
    """Do nothing: others heed the signal. Unlike ``SIG_IGN``, programs that a task starts do not
    inherit this."""


def leave_terminal() -> None:
    """Have reads from a terminal in whose background this process is fail, here and in what it
    starts. Otherwise the system would send TTIN to the whole group: it stops all who do not heed
    it, and the supervisor takes it for a request."""
    for each in unclaimed(MORE, FEWER):
        signal.signal(each, signal.SIG_IGN)


def is_quit(signum: int) -> bool:
    """Whether a signal asks for an immediate stop."""
    return signum == getattr(signal, "SIGQUIT", None)


def is_insistent(signum: int) -> bool:
    """Whether a signal that arrives twice asks for an immediate stop."""
    return signum in (signal.SIGTERM, signal.SIGINT)


def install(handlers: Mapping[signal.Signals, Handler]) -> dict[signal.Signals, Any]:
    """Install ``handlers`` and return the former ones. Only for the main thread.

    Processes that tasks fork get the former handlers back: with ours, TERM would not end them.
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
            before=_block, after_in_parent=_unblock, after_in_child=_restore_handlers
        )


class _Mask(threading.local):
    """The signal mask of a thread before it forked."""

    former: Iterable[int] | None = None


_mask = _Mask()


def _block() -> None:
    # Python drops pending signals in the child: one that arrived before the child has its former
    # handlers would be lost.
    if _installed:
        _mask.former = signal.pthread_sigmask(signal.SIG_BLOCK, OWN_SIGNALS)


def _unblock() -> None:
    if _mask.former is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _mask.former)
        _mask.former = None


def _restore_handlers() -> None:
    for signum, (ours, former) in _installed.items():
        if signal.getsignal(signum) == ours:
            signal.signal(signum, signal.SIG_DFL if former is None else former)
    if _installed:
        # It shares our socket: signals to the child would wake us instead.
        signal.set_wakeup_fd(-1)
    _installed.clear()
    _unblock()


@contextmanager
def handling(handler: Handler, wakeup_descriptor: int) -> Iterator[None]:
    """Call ``handler`` for the signals to a supervisor inside the block, and write a byte to the
    descriptor for each signal, also when a child ends. Only for the main thread."""
    heeded = [*graceful_signals(), *hangup_signals(), *unclaimed(REOPEN, STACKS, MORE, FEWER)]
    handlers: dict[signal.Signals, Handler] = dict.fromkeys(heeded, handler)
    if hasattr(signal, "SIGQUIT"):
        handlers |= {signal.SIGQUIT: handler, signal.SIGCHLD: leave_alone}
    former_descriptor = signal.set_wakeup_fd(wakeup_descriptor, warn_on_full_buffer=False)
    former = install(handlers)
    try:
        yield
    finally:
        for signum, former_handler in former.items():
            # None: it was not installed from Python, and cannot be restored from here.
            if former_handler is not None:
                signal.signal(signum, former_handler)
        signal.set_wakeup_fd(former_descriptor)
        _installed.clear()
