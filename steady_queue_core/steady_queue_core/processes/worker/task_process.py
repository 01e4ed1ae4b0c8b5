"""A task process as its worker sees it: a child that runs one job at a time."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress

from .frames import Frames

#: What a task process sends when it ends in good order.
FAREWELL = b""


class NotStarted(Exception):
    """The process had ended before it received the job."""


class EndedAtWork(Exception):
    """The process ended, or sent nonsense, after it had received the job."""


class TaskProcess:
    """A child of the worker, at the other end of a socket. Used by one thread."""

    def __init__(self, pid: int, connection: socket.socket, largest: int) -> None:
        self.pid = pid
        self._frames = Frames(connection, largest)

    def call(self, job: bytes) -> bytes:
        """Have a job run; return its outcome. Raises ``NotStarted`` and ``EndedAtWork``."""
        try:
            self._frames.send(job)
        except OSError as error:
            raise NotStarted from error
        try:
            answer = self._frames.receive()
        except ConnectionResetError as error:
            # The system resets the connection of a process that ends with something unread.
            raise NotStarted from error
        except (OSError, ValueError) as error:
            raise EndedAtWork(str(error)) from error
        if answer == FAREWELL:
            raise NotStarted
        if answer is None:
            raise EndedAtWork
        return answer

    def abandon(self) -> None:
        """Let ``call``, in its thread, return as if the process had ended. Any thread."""
        with suppress(OSError):
            self._frames.connection.shutdown(socket.SHUT_RDWR)

    def ask_for_stacks(self) -> None:
        """Have the process log what its threads do. Only while it runs a job: a process that has
        ended is not reaped before."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGUSR2)

    def dismiss(self) -> None:
        """Say that no more jobs come: the process ends."""
        with suppress(OSError):
            self._frames.connection.shutdown(socket.SHUT_WR)

    def await_end(self, deadline: float) -> None:
        """Wait until the process has said farewell, at most until ``deadline``, by the monotonic
        clock. Whatever else it sends is lost."""
        connection = self._frames.connection
        with suppress(OSError):
            while (left := deadline - time.monotonic()) > 0:
                connection.settimeout(left)
                if not connection.recv(1024):
                    break

    def close(self) -> None:
        """Close the socket; the process then ends, unless it is at work."""
        self._frames.connection.close()
