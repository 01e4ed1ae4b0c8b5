"""Sleeping until something happens: a signal, a finished task, a ringing bell, or the time."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress

from ...dialects import Wakeup


class Waiter:
    """One thread waits; any thread, and signal handlers, may wake it."""

    def __init__(self) -> None:
        # A pipe could not be waited for everywhere, and a late wake-up must not be written to
        # whatever has got its number since.
        self._read_end, self._write_end = socket.socketpair()
        self._read_end.setblocking(False)
        self._write_end.setblocking(False)
        self._selector = _selector()
        self._selector.register(self._read_end, selectors.EVENT_READ)
        self._bell: Wakeup | None = None
        #: Whether the waiting thread sleeps, or is about to: otherwise waking it is needless.
        self.sleeping = False

    def listen_to(self, bell: Wakeup | None) -> None:
        """Also wake when ``bell`` rings."""
        if self._bell is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(self._bell.fileno())
            self._bell.close()
        self._bell = bell
        if bell is not None:
            self._selector.register(bell.fileno(), selectors.EVENT_READ)

    @property
    def hears(self) -> bool:
        """Whether a bell would ring if there were new work."""
        return self._bell is not None and self._bell.in_order

    def wake(self) -> None:
        """Wake the waiting thread, now or when it next waits."""
        with suppress(OSError):  # It is full of wake-ups already, or nobody waits any more.
            self._write_end.send(b"\0")

    @property
    def write_descriptor(self) -> int:
        """The descriptor to which a written byte wakes; for ``signal.set_wakeup_fd``."""
        return self._write_end.fileno()

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``; say whether the bell has rung."""
        rung = False
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.fileobj is self._read_end:
                with suppress(BlockingIOError):
                    while len(self._read_end.recv(4096)) == 4096:
                        pass
            elif self._bell is not None:
                self._bell.clear()
                rung = True
        return rung

    def close(self) -> None:
        """Give the descriptors back."""
        self.listen_to(None)
        self._selector.close()
        self._read_end.close()
        self._write_end.close()


def _selector() -> selectors.BaseSelector:
    # Not epoll: it is a descriptor more, and a forked process would share it.
    kind = getattr(selectors, "PollSelector", selectors.SelectSelector)
    return kind()
