"""What ends the demo early: Ctrl-C, TERM, and HUP, which a closed terminal sends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Those that have come.
_came: list[int] = []
#: Not empty while somebody asks for them.
_askers: list[str] = []


def interrupt_at_signals() -> None:
    """Raise ``KeyboardInterrupt`` in the main thread at the first of the signals. Those after it
    are ignored: they would end the clearing up half-way."""
    for signum in SIGNALS:
        # nohup asks for a program that stays.
        if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, _interrupt)


@contextmanager
def asking() -> Iterator[None]:
    """Raise nothing by itself in the block, which calls ``raise_if_asked()`` again and again."""
    _askers.append("block")
    try:
        yield
    finally:
        _askers.pop()


def raise_if_asked() -> None:
    """Raise ``KeyboardInterrupt`` if a signal has come."""
    # Python ignores what a handler raises in callbacks of weak references, which imports have,
    # and in finalizers.
    if _came:
        raise KeyboardInterrupt


def _interrupt(signum: int, frame: FrameType | None) -> None:
    _came.append(signum)
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    if not _askers:
        raise KeyboardInterrupt
