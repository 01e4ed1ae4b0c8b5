"""Children that are processes: forking one, and being one."""

from __future__ import annotations

import logging
import os
import random
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from types import FrameType

from ...configuration import ResolvedOptions
from ...errors import ProcessExitError
from ...logging import about, get_logger
from ..base import journal_reader as remains
from ..base import system as host
from ..base.connection_setup import close_connections
from ..base.context import ProcessContext
from ..base.journal import RunJournal, folder_for
from ..base.posix_signals import STOP_SIGNALS, graceful_signals, install
from ..base.registration import new_name
from ..worker.forked_copies import end_daemons, flush_output
from .child import ManagedProcess, ProcessSpec

logger = get_logger("steady_queue.process")

#: Seconds that a process whose supervisor died may take to end.
ORPHAN_GRACE = 3.0
#: Seconds that one may take beyond the time for its tasks to end, before it breaks them off.
STOP_GRACE = 2.0
#: Seconds between two looks at whether the supervisor is there.
WATCH_INTERVAL = 0.5
#: Seconds for the main thread to handle a signal.
HANDLING = 0.3


@dataclass(eq=False, kw_only=True)
class ForkedProcess(ManagedProcess):
    """A forked process."""

    ready_pipe: int

    def read_reports(self, patience: float) -> None:
        with suppress(BlockingIOError, OSError):
            while report := os.read(self.ready_pipe, 4096):
                self.saw_sign(patience, ready=b"r" in report)

    def ask_to_stop(self) -> None:
        self._signal(signal.SIGTERM)

    def break_off(self) -> None:
        self._signal(signal.SIGQUIT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def forget(self) -> None:
        with suppress(OSError):
            os.close(self.ready_pipe)

    def lost(self, how: str) -> ProcessExitError:
        return ProcessExitError(
            f"The process {self.name} (pid {self.pid}) {how} while it was running this job."
        )

    def _signal(self, signum: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signum)


@dataclass(kw_only=True)
class ForkedContext(ProcessContext):
    """The surroundings of a child that is a process: signals, and a parent that may die.

    The main thread may wait for the database, in a driver that lets no signal through. So a thread
    looks after the process meanwhile: it learns of each signal as it arrives.
    """

    parent: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._arrivals, self._arrival = socket.socketpair()
        self._arrival.setblocking(False)

    @property
    def orphaned(self) -> bool:
        return os.getppid() != self.parent

    def install_signals(self) -> None:
        """TERM, INT and HUP ask to stop; QUIT ends the process at once, in good order."""
        signal.set_wakeup_fd(self._arrival.fileno(), warn_on_full_buffer=False)
        install({**dict.fromkeys(graceful_signals(), self._stop), signal.SIGQUIT: self._quit})
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def watch(self) -> None:
        """End the process for certain: when asked to at once, soon after it was asked to stop and
        after its supervisor has died."""
        Thread(target=self._watch, name="steady-queue-watch", daemon=True).start()

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        self.stop_requested = True

    def _quit(self, signum: int, frame: FrameType | None) -> None:
        self.journal.leave_cleanly()
        with suppress(BaseException):
            self.last_words()
        _leave(0)

    def _watch(self) -> None:
        stopping_since = None
        while not self.orphaned:
            self._heed(self._arrived(WATCH_INTERVAL))
            if self.database.is_waited_for:
                self.report(None)
            if self.stop_requested:
                stopping_since = stopping_since or time.monotonic()
                patience = self.options.shutdown_timeout.total_seconds() + STOP_GRACE
                if time.monotonic() - stopping_since > patience:
                    self._quit(signal.SIGQUIT, None)
        self.waiter.wake()
        time.sleep(ORPHAN_GRACE)
        with suppress(BaseException):
            self.last_words()
        _leave(1)

    def _arrived(self, seconds: float) -> bytes:
        """Return the numbers of signals that have arrived within ``seconds``."""
        self._arrivals.settimeout(seconds)
        try:
            arrived = self._arrivals.recv(4096)
        except TimeoutError:
            return b""
        self.waiter.wake()
        return arrived

    def _heed(self, arrived: bytes) -> None:
        """Follow signals in place of the main thread, if that does not come to it.

        Where it does it must: what arrives may be a signal to a process that a task has just
        forked, which writes to the same socket until it has let go of it.
        """
        if not arrived:
            return
        arrived_at = time.monotonic()
        while self.database.is_waited_for_since(arrived_at):
            if time.monotonic() - arrived_at > HANDLING:
                if signal.SIGQUIT in arrived:
                    self._quit(signal.SIGQUIT, None)
                if set(arrived).intersection(graceful_signals()):
                    self.stop_requested = True
                return
            time.sleep(HANDLING / 10)


class Forks:
    """Forks children. Used from the main thread of a process without other threads."""

    wants_no_threads = True

    def __init__(self, options: ResolvedOptions, using: str) -> None:
        self.options, self.using = options, using

    def start(
        self, spec: ProcessSpec, supervisor_id: int | None, siblings: list[ManagedProcess]
    ) -> ManagedProcess:
        """Fork a process for ``role``."""
        name = new_name(spec.kind)
        journal = RunJournal.create(name, spec.slots, folder_for(self.options.state_directory))
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        parent = os.getpid()
        # A child must not share one; what looks after the processes opens another when needed.
        close_connections()
        # What is buffered at a fork would be written twice.
        flush_output()
        # A signal must reach the parent's handlers or the child's, not the parent's within the
        # child.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            pid = os.fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            os.close(read_end)
            os.close(write_end)
            remains.forget(journal.path)
            raise
        if pid == 0:
            # Whatever happens here must not unwind into the supervisor's code.
            code = 1
            try:
                os.close(read_end)
                for sibling in siblings:
                    sibling.forget()
                context = ForkedContext(
                    options=self.options,
                    using=self.using,
                    kind=spec.kind,
                    name=name,
                    parent=parent,
                    journal=journal,
                    report=lambda process_id: _report(write_end, process_id),
                    supervisor_id=supervisor_id,
                )
                code = _be(spec, context)
            except BaseException:
                logger.critical(
                    "%s failed", name, exc_info=True, extra=about("process.failed", kind=spec.kind)
                )
            finally:
                with suppress(BaseException):
                    logging.shutdown()
                    flush_output()
                _leave(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        os.close(write_end)
        child = ForkedProcess(spec, name, pid, journal, ready_pipe=read_end)
        child.deadline = time.monotonic() + self.options.fork_startup_timeout.total_seconds()
        return child

    def ended(self, children: list[ManagedProcess]) -> list[tuple[ManagedProcess, str]]:
        """Return the children that have ended; also take leave of processes that PID 1 inherits."""
        by_pid = {child.pid: child for child in children}
        ended: list[tuple[ManagedProcess, str]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ended
            if pid == 0:
                return ended
            child = by_pid.get(pid)
            if child is not None:
                child.exit_code = os.waitstatus_to_exitcode(status)
                ended.append((child, _ending(child.exit_code)))


def _leave(code: int) -> None:
    with suppress(BaseException):
        end_daemons()
    os._exit(code)


def _be(spec: ProcessSpec, context: ForkedContext) -> int:
    context.install_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    if not host.follow_parent(context.parent):
        return 1
    context.watch()
    context.journal.belong_to(os.getpid())
    random.seed()
    context.live(lambda: spec.build(context).run())
    return 0


def _report(descriptor: int, process_id: int | None) -> None:
    with suppress(OSError):
        os.write(descriptor, b"." if process_id is None else b"r")


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
