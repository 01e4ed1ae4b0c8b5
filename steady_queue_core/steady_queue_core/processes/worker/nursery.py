"""The worker's side of its nursery, the process that forks its task processes."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from ..base import system
from ..base.forking import fork
from .nursery_process import ANSWER, FORK, REAP, REQUEST, NurseryProcess

#: Seconds that the nursery gets to end its processes.
GRACE = 1.0


class NurseryLost(Exception):
    """The nursery has ended, or forks no more: the worker cannot run its jobs."""


class Nursery:
    """Forks and reaps task processes. Any thread of the worker may ask it to."""

    def __init__(self, run: Callable[[socket.socket], object]) -> None:
        """Start the nursery, from a process that has one thread. ``run(connection)`` is the work of
        a task process. Raises ``OSError``."""
        self._lock = Lock()
        self._control, theirs = socket.socketpair()
        for control in (self._control, theirs):
            control.settimeout(None)  # The project may have set a default.
        worker = os.getpid()
        self.pid = fork()
        if self.pid == 0:
            try:
                self._control.close()
                if system.signal_on_parent_death(worker, signal.SIGKILL):
                    system.set_title("nursery", f"of worker {worker}")
                    NurseryProcess(theirs, run).serve()
            finally:
                os._exit(0)
        theirs.close()
        #: Whether the worker is ending its task processes.
        self.closing = False

    def fork(self) -> tuple[int, socket.socket]:
        """Return the pid of a new task process and the socket to it. Raises ``NurseryLost``."""
        with self._lock:
            try:
                self._control.sendall(REQUEST.pack(FORK, 0))
                answer, descriptors, _, _ = socket.recv_fds(self._control, ANSWER.size, 1)
            except OSError as error:
                raise NurseryLost("the process that forks the task processes has ended") from error
        pid = _number(answer)
        if pid < 0:
            raise NurseryLost(f"no task process could be forked: {os.strerror(-pid)}")
        if not descriptors:
            raise NurseryLost("a task process was forked, but there is no descriptor left for it")
        return pid, socket.socket(fileno=descriptors[0])

    def reap(self, pid: int) -> int:
        """End a task process, unless it has ended; return its exit code. Raises
        ``NurseryLost``."""
        with self._lock:
            try:
                self._control.sendall(REQUEST.pack(REAP, pid))
                return _number(self._control.recv(ANSWER.size, socket.MSG_WAITALL))
            except OSError as error:
                raise NurseryLost("the process that forks the task processes has ended") from error

    def close(self) -> None:
        """Kill all task processes, and wait until they have ended: others may run their jobs from
        then on. Safe in a signal handler."""
        self.closing = True
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + GRACE
        with suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
                time.sleep(0.002)


def _number(answer: bytes) -> int:
    if len(answer) < ANSWER.size:
        raise NurseryLost("the process that forks the task processes has ended")
    return int(ANSWER.unpack(answer)[0])
