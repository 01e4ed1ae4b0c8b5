"""Children that are processes: the parent's side of a fork."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ...configuration import ResolvedOptions
from ...errors import ProcessExitError
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..base.connection_setup import close_connections, prepare_only
from ..base.forking import describe_exit, disown_exit, do_own_exit, flush_output, fork
from ..base.journal import RunJournal, folder_for
from ..base.registration import new_name
from .forked_context import ForkedContext, exit_now
from .managed_process import ManagedProcess, ProcessSpec

logger = get_logger("steady_queue.process")


@dataclass(eq=False, kw_only=True)
class ForkedProcess(ManagedProcess):
    """A forked process."""

    report_pipe: int

    def read_reports(self, timeout: float) -> None:
        with suppress(BlockingIOError, OSError):
            while reports := os.read(self.report_pipe, 4096):
                self.note_alive(timeout, ready=b"r" in reports)
                self.is_at_work = self.is_at_work or b"w" in reports
                self.wants_successor = self.wants_successor or b"u" in reports

    def request_stop(self) -> None:
        self._signal(signal.SIGTERM)

    def retire(self) -> None:
        # The system ignores it where nobody heeds it, and few programs send it.
        self._signal(signal.SIGURG)

    def reopen_logs(self) -> None:
        self._signal(signal.SIGUSR1)

    def log_stacks(self) -> None:
        self._signal(signal.SIGUSR2)

    def terminate(self) -> None:
        self._signal(signal.SIGQUIT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.report_pipe)
        self.journal.close()

    def lost_error(self, how: str) -> ProcessExitError:
        return ProcessExitError(
            f"The process {self.name} (pid {self.pid}) {how} while it was running this job."
        )

    def _signal(self, signum: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signum)


class ForkLauncher:
    """Forks children, from the main thread of a process without other threads."""

    wants_no_threads = True

    def __init__(
        self,
        children: Callable[[], Iterable[ManagedProcess]],
        note_other: Callable[[int, int], object] = lambda pid, exit_code: None,
    ) -> None:
        """``children()`` are all that are alive; ``note_other(pid, exit_code)`` is told of
        processes that have ended and are none of them."""
        self._children, self._note_other = children, note_other
        #: Descriptors that only those children keep whose spec names them.
        self.reserved: set[int] = set()

    def start(
        self, spec: ProcessSpec, options: ResolvedOptions, using: str, supervisor_id: int | None
    ) -> ManagedProcess:
        """Fork a process for ``spec``."""
        name = new_name(spec.kind)
        journal = RunJournal.create(name, spec.capacity, folder_for(options.state_directory))
        try:
            read_end, write_end = os.pipe()
        except OSError:
            journal.discard()
            raise
        os.set_blocking(read_end, False)
        parent = os.getpid()
        # Parent and child must not share a connection; the maintenance opens another when needed.
        close_connections()
        try:
            pid = fork()
        except OSError:
            os.close(read_end)
            os.close(write_end)
            journal.discard()
            raise
        if pid == 0:
            # Nothing that happens here may unwind into the supervisor's code.
            code = 1
            try:
                disown_exit()
                os.close(read_end)
                for sibling in self._children():
                    sibling.close()
                for reserved in self.reserved - spec.descriptors:
                    os.close(reserved)
                if spec.registers:
                    prepare_only(using)
                context = ForkedContext(
                    options=options,
                    using=using,
                    kind=spec.kind,
                    name=name,
                    parent=parent,
                    journal=journal,
                    report=lambda process_id: _report(
                        write_end, b"." if process_id is None else b"r"
                    ),
                    report_at_work=lambda: _report(write_end, b"w"),
                    report_used_up=lambda: _report(write_end, b"u"),
                    supervisor_id=supervisor_id,
                )
                code = context.run_spec(spec)
            except BaseException:
                log_internal_error(
                    logger,
                    "%s failed",
                    name,
                    level=logging.CRITICAL,
                    extra=about("process.failed", kind=spec.kind),
                )
            finally:
                with suppress(BaseException):
                    do_own_exit(partial(exit_now, code))
                    logging.shutdown()
                    flush_output()
                exit_now(code)
        os.close(write_end)
        child = ForkedProcess(spec, name, pid, journal, report_pipe=read_end)
        child.deadline = time.monotonic() + options.fork_startup_timeout.total_seconds()
        return child

    def ended(self) -> list[tuple[ManagedProcess, str]]:
        """Return the children that have ended, and how; as PID 1, also reap adopted processes."""
        by_pid = {child.pid: child for child in self._children()}
        ended: list[tuple[ManagedProcess, str]] = []
        # Other processes are somebody else's to reap, who wants to know how they have ended.
        for sought in [-1] if os.getpid() == 1 else list(by_pid):
            for pid, code in _ended(sought):
                child = by_pid.get(pid)
                if child is None:
                    self._note_other(pid, code)
                else:
                    child.exit_code = code
                    ended.append((child, describe_exit(code)))
        return ended


def _ended(sought: int) -> Iterator[tuple[int, int]]:
    """Reap the process ``sought`` if it has ended, or all that have (-1); yield pids and codes."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(sought, os.WNOHANG))[0]:
            yield found[0], os.waitstatus_to_exitcode(found[1])


def _report(descriptor: int, report: bytes) -> None:
    with suppress(OSError):
        os.write(descriptor, report)
