"""Sleeping until something happens: a signal, a finished task, a ringing bell, or the time."""

from __future__ import annotations

import os
import select
from contextlib import suppress

from ..dialects import Wakeup


class Waiter:
    """One thread waits; any thread, and signal handlers, may wake it."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)
        self._poll = select.poll()
        self._poll.register(self._read_end, select.POLLIN)
        self._bell: Wakeup | None = None
        #: Whether the waiting thread sleeps, or is about to: otherwise waking it is needless.
        self.sleeping = False

    def listen_to(self, bell: Wakeup | None) -> None:
        """Also wake when ``bell`` rings."""
        if self._bell is not None:
            with suppress(KeyError):
                self._poll.unregister(self._bell.fileno())
            self._bell.close()
        self._bell = bell
        if bell is not None:
            self._poll.register(bell.fileno(), select.POLLIN)

    @property
    def hears(self) -> bool:
        """Whether a bell would ring if there were new work."""
        return self._bell is not None and self._bell.in_order

    def wake(self) -> None:
        """Wake the waiting thread, now or when it next waits."""
        with suppress(BlockingIOError):  # The pipe is full of wake-ups already.
            os.write(self._write_end, b"\0")

    @property
    def write_descriptor(self) -> int:
        """The descriptor to which a written byte wakes; for ``signal.set_wakeup_fd``."""
        return self._write_end

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``; say whether the bell has rung."""
        rung = False
        for descriptor, _ in self._poll.poll(max(0.0, seconds) * 1000):
            if descriptor == self._read_end:
                with suppress(BlockingIOError):
                    while len(os.read(self._read_end, 4096)) == 4096:
                        pass
            elif self._bell is not None:
                self._bell.clear()
                rung = True
        return rung

    def close(self) -> None:
        """Give the descriptors back."""
        self.listen_to(None)
        os.close(self._read_end)
        os.close(self._write_end)
