"""The nursery's own process: forks task processes for a worker that has threads, and so cannot."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from ..base import system
from ..base.forking import accept_signals, fork
from ..base.posix_signals import graceful_signals, hangup_signals, install, leave_alone

#: What the worker asks for: one of the two below, and the pid of a process.
REQUEST = struct.Struct("!cq")
FORK, REAP = b"f", b"r"
#: The answer: a pid or an exit code, or a negated error number where there is no pid.
ANSWER = struct.Struct("!q")


class NurseryProcess:
    """Serves the worker at the other end of a socket; ends when that does, and all children with
    it. ``run(connection)`` is the work of a child, which gets one end of a new socket."""

    def __init__(self, control: socket.socket, run: Callable[[socket.socket], object]) -> None:
        self.control, self._run = control, run
        #: Exit codes of the children, by pid; ``None``: it is running.
        self._children: dict[int, int | None] = {}
        self._wakeups, self._wakeup_writer = socket.socketpair()

    def serve(self) -> None:
        """Answer requests until the worker has ended or wants no more."""
        self._install_signals()
        while self._serve_next():
            pass
        self._end_children()
        signal.set_wakeup_fd(-1)
        for each in (self.control, self._wakeups, self._wakeup_writer):
            each.close()

    def _serve_next(self) -> bool:
        ready, _, _ = select.select([self.control, self._wakeups], [], [])
        if self._wakeups in ready:
            self._wakeups.recv(4096)
            self._note_ended()
        return self.control not in ready or self._answer()

    def _install_signals(self) -> None:
        # A signal to the whole group, or from a service manager to all processes, is the worker's
        # to heed: it ends us.
        ignored = [*graceful_signals(), *hangup_signals(), signal.SIGQUIT, signal.SIGCHLD]
        install(dict.fromkeys(ignored, leave_alone))
        self._wakeup_writer.setblocking(False)
        signal.set_wakeup_fd(self._wakeup_writer.fileno(), warn_on_full_buffer=False)
        accept_signals()

    def _answer(self) -> bool:
        """Answer a request; return ``False`` if there is none to come."""
        try:
            request = self.control.recv(REQUEST.size, socket.MSG_WAITALL)
            if len(request) < REQUEST.size:
                return False
            kind, pid = REQUEST.unpack(request)
            if kind == FORK:
                self._fork()
            else:
                self.control.sendall(ANSWER.pack(self._reap(pid)))
        except OSError:
            return False  # The worker has ended.
        return True

    def _fork(self) -> None:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self.control.sendall(ANSWER.pack(-(error.errno or 1)))
            return
        with ours, theirs:
            parent = os.getpid()
            try:
                pid = fork()
            except OSError as error:
                self.control.sendall(ANSWER.pack(-(error.errno or 1)))
                return
            if pid == 0:
                self._be_child(parent, ours, theirs)
            self._children[pid] = None
            socket.send_fds(self.control, [ANSWER.pack(pid)], [ours.fileno()])

    def _be_child(self, parent: int, ours: socket.socket, theirs: socket.socket) -> None:
        """Run in the forked process. Never returns."""
        try:
            for other in (ours, self.control, self._wakeups, self._wakeup_writer):
                other.close()
            # Its job is about to run elsewhere: it must not outlive us.
            if system.signal_on_parent_death(parent, signal.SIGKILL):
                self._run(theirs)
        finally:
            os._exit(1)

    def _reap(self, pid: int) -> int:
        """End a child if it is running, and return its exit code."""
        code = self._children.pop(pid)
        if code is None:
            os.kill(pid, signal.SIGKILL)  # Has no effect on one that is about to exit.
            _, status = os.waitpid(pid, 0)
            code = os.waitstatus_to_exitcode(status)
        return code

    def _note_ended(self) -> None:
        for pid, code in self._children.items():
            if code is None:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    self._children[pid] = os.waitstatus_to_exitcode(status)

    def _end_children(self) -> None:
        running = [pid for pid, code in self._children.items() if code is None]
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in running:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
