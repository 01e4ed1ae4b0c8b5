"""What ends the demo early: Ctrl-C, TERM, and HUP, which a closed terminal sends."""

from __future__ import annotations

import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_at_signals() -> None:
    """Raise ``KeyboardInterrupt`` in the main thread at the first of the signals. Those after it
    are ignored: they would end the clearing up half-way."""
    for signum in SIGNALS:
        # nohup asks for a program that stays.
        if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
