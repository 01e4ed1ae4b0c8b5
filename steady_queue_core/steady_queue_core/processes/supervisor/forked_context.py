"""The child's side of a fork: signals, and the watch for a supervisor that dies."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from types import FrameType

from ..base import system
from ..base.context import ProcessContext
from ..base.forking import accept_signals, flush_soon, leave_input
from ..base.posix_signals import (
    REOPEN,
    STACKS,
    graceful_signals,
    hangup_signals,
    install,
    leave_alone,
    leave_terminal,
    unclaimed,
)
from ..worker.forked_copies import end_daemons
from .managed_process import ProcessSpec

#: Seconds that a process whose supervisor died may take to end.
ORPHAN_GRACE = 3.0
#: Seconds beyond the shutdown timeout after which a process interrupts its own tasks.
STOP_GRACE = 2.0
#: Seconds between two checks whether the supervisor is alive.
WATCH_INTERVAL = 0.5
#: Seconds that the main thread gets to handle a signal.
HANDLER_TIMEOUT = 0.3


@dataclass(kw_only=True)
class ForkedContext(ProcessContext):
    """The environment of a child that is a process: signals, and a parent that may die.

    The main thread may be waiting for the database in a driver that lets no signal handler run. So
    a watcher thread learns of each signal as it arrives, and acts in its place.
    """

    parent: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._signals, self._signal_writer = socket.socketpair()
        self._signal_writer.setblocking(False)

    @property
    def orphaned(self) -> bool:
        return os.getppid() != self.parent

    def run_spec(self, spec: ProcessSpec) -> int:
        """Do the work of ``spec`` in the forked process; return its exit code."""
        self.install_signals()
        leave_terminal()
        leave_input()
        accept_signals()
        if not system.signal_on_parent_death(self.parent):
            return 1
        self.journal.set_owner(os.getpid())
        random.seed()
        self.run(lambda: self._build_and_run(spec))
        return 0

    def _build_and_run(self, spec: ProcessSpec) -> None:
        work = spec.build(self)  # May fork, so there is no other thread yet.
        self.watch()
        work.run()

    def install_signals(self) -> None:
        """Stop gracefully on TERM and INT; exit cleanly and at once on QUIT. On HUP, which may go
        to all processes, the supervisor decides."""
        signal.set_wakeup_fd(self._signal_writer.fileno(), warn_on_full_buffer=False)
        install(
            {
                **dict.fromkeys(graceful_signals(), self._stop),
                **dict.fromkeys(hangup_signals(), leave_alone),
                signal.SIGQUIT: self._quit,
                signal.SIGURG: self._retire,
                # The watcher does what these ask for.
                **dict.fromkeys(unclaimed(REOPEN, STACKS), leave_alone),
            }
        )
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def watch(self) -> None:
        """Start the watcher, which ends the process for certain: at once on QUIT, and after a
        grace period when a stop was requested or the supervisor has died."""
        Thread(target=self._watch, name="steady-queue-watch", daemon=True).start()

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        self.request_stop()

    def _retire(self, signum: int, frame: FrameType | None) -> None:
        self.retiring = True

    def _quit(self, signum: int, frame: FrameType | None) -> None:
        self.journal.mark_clean_exit()
        with suppress(BaseException):
            self.before_exit()
        exit_now(0)

    def _watch(self) -> None:
        stopping_since = None
        while not self.orphaned:
            self._handle(self._await_signals(WATCH_INTERVAL))
            if self.database.is_waiting:
                self.report(None)
            if self.stop_requested:
                stopping_since = stopping_since or time.monotonic()
                timeout = self.options.shutdown_timeout.total_seconds() + STOP_GRACE
                if time.monotonic() - stopping_since > timeout:
                    self._quit(signal.SIGQUIT, None)
        self.waiter.wake()
        time.sleep(ORPHAN_GRACE)
        with suppress(BaseException):
            self.before_exit()
        exit_now(1)

    def _await_signals(self, seconds: float) -> bytes:
        """Return the numbers of signals that arrive within ``seconds``."""
        self._signals.settimeout(seconds)
        try:
            arrived = self._signals.recv(4096)
        except TimeoutError:
            return b""
        self.waiter.wake()
        return arrived

    def _handle(self, arrived: bytes) -> None:
        """Handle signals for the main thread, but only while that waits for the database.

        Otherwise the main thread must: the signal may have been sent to a process that a task has
        just forked, which writes to the same socket until it has detached from it.
        """
        if not arrived:
            return
        if REOPEN in arrived:
            self.reopen_logs()
        if STACKS in arrived:
            self.log_stacks()
        arrived_at = time.monotonic()
        while self.database.is_waiting_since(arrived_at):
            if time.monotonic() - arrived_at > HANDLER_TIMEOUT:
                if signal.SIGQUIT in arrived:
                    self._quit(signal.SIGQUIT, None)
                if set(arrived).intersection(graceful_signals()):
                    self.request_stop()
                if signal.SIGURG in arrived:
                    self.retiring = True
                return
            time.sleep(HANDLER_TIMEOUT / 10)


def exit_now(code: int) -> None:
    """End the process without unwinding, and with it the daemons that its tasks have started."""
    for each in (end_daemons, flush_soon):
        with suppress(BaseException):
            each()
    os._exit(code)
