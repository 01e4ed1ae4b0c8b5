"""The signals that a supervisor follows while it runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: Signals that are held back while a process is forked. Not every system has all of them.
STOP_SIGNALS = {
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
}

Handler = Callable[[int, FrameType | None], Any]


def graceful_signals() -> list[signal.Signals]:
    """Return the signals that ask for a graceful stop: HUP, which a closed terminal sends, is one
    unless whoever started us (nohup) has it ignored."""
    hangup = [each for each in STOP_SIGNALS if each.name == "SIGHUP"]
    followed = [each for each in hangup if signal.getsignal(each) is not signal.SIG_IGN]
    return [signal.SIGTERM, signal.SIGINT, *followed]


def is_quit(signum: int) -> bool:
    """Whether a signal asks for a stop at once."""
    return signum == getattr(signal, "SIGQUIT", None)


@contextmanager
def handling(handler: Handler, wakeup_descriptor: int) -> Iterator[None]:
    """Have ``handler`` called for the stop signals, and a byte written for each signal, also
    when a child ends. Afterwards everything is as it was. For the main thread."""
    handlers: dict[signal.Signals, Handler] = dict.fromkeys(graceful_signals(), handler)
    if hasattr(signal, "SIGQUIT"):
        handlers |= {signal.SIGQUIT: handler, signal.SIGCHLD: lambda signum, frame: None}
    former_descriptor = signal.set_wakeup_fd(wakeup_descriptor, warn_on_full_buffer=False)
    former = {signum: signal.signal(signum, handlers[signum]) for signum in handlers}
    try:
        yield
    finally:
        for signum, its_handler in former.items():
            # None: it was not installed from Python, and cannot be from here.
            if its_handler is not None:
                signal.signal(signum, its_handler)
        signal.set_wakeup_fd(former_descriptor)
