"""Sleep that a signal, a finished task, or a wake-up from the database cuts short."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress

from ...dialects import Wakeup


class Waiter:
    """Lets one thread wait; any thread, and signal handlers, may wake it."""

    def __init__(self) -> None:
        # Not a pipe: select() on Windows takes sockets only. And not os.write() to a bare
        # descriptor: a late wake-up must not go to a file that has reused its number.
        self._read_end, self._write_end = socket.socketpair()
        self._read_end.setblocking(False)
        self._write_end.setblocking(False)
        self._selector = _selector()
        self._selector.register(self._read_end, selectors.EVENT_READ)
        self._listener: Wakeup | None = None
        #: Whether the waiting thread sleeps, or is about to: otherwise waking it is needless.
        self.sleeping = False

    def listen_to(self, listener: Wakeup | None) -> None:
        """Also wake when ``listener`` is notified; replaces the former listener."""
        if self._listener is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(self._listener.fileno())
            self._listener.close()
        self._listener = listener
        if listener is not None:
            self._selector.register(listener.fileno(), selectors.EVENT_READ)

    @property
    def is_listening(self) -> bool:
        """Whether a working listener would be notified of new jobs."""
        return self._listener is not None and self._listener.in_order

    def wake(self) -> None:
        """Wake the waiting thread, now or when it next waits."""
        with suppress(OSError):  # The buffer is full of wake-ups, or the waiter is closed.
            self._write_end.send(b"\0")

    @property
    def write_descriptor(self) -> int:
        """The descriptor for ``signal.set_wakeup_fd``: a byte written to it wakes."""
        return self._write_end.fileno()

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``; return whether the listener was notified."""
        notified = False
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.fileobj is self._read_end:
                with suppress(BlockingIOError):
                    while len(self._read_end.recv(4096)) == 4096:
                        pass
            elif self._listener is not None:
                self._listener.clear()
                notified = True
        return notified

    def close(self) -> None:
        """Close the listener and all descriptors."""
        self.listen_to(None)
        self._selector.close()
        self._read_end.close()
        self._write_end.close()


def _selector() -> selectors.BaseSelector:
    # Not epoll: it needs one more descriptor, which a forked process would share.
    kind = getattr(selectors, "PollSelector", selectors.SelectSelector)
    return kind()
