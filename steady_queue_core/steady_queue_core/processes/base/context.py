"""The environment of a worker, dispatcher or scheduler: options, database, registration, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...configuration import ResolvedOptions
from ...internal_errors import log_internal_error
from ...logging import about, get_logger, process_name
from ...project_code import contained
from . import diagnosis
from .connections import tidy_connections
from .database import QueueDatabase, Unavailable
from .events import Events
from .journal import RunJournal
from .lifecycle import Lifecycle
from .registration import ProcessRegistration
from .response_timeout import ResponseTimeouts
from .system import set_title
from .waiter import Waiter

logger = get_logger("steady_queue.process")

#: Seconds between two rounds of which the first failed.
FAILURE_PAUSE = 5.0


class Tasks(Protocol):
    """The running tasks of a worker, as its supervisor controls them."""

    @property
    def running(self) -> int:
        """How many tasks are running."""

    def break_off(self) -> None:
        """Interrupt the tasks; may be called again if they do not end."""

    def close(self) -> None:
        """Let the threads of the tasks end."""

    def log_stacks(self) -> None:
        """Log what each thread and coroutine does, and for which job."""


@dataclass
class ProcessContext:
    """The environment of a worker, dispatcher or scheduler."""

    options: ResolvedOptions
    using: str
    kind: str
    name: str
    journal: RunJournal
    #: Reports to the supervisor that the process is alive and, with its id, that it is ready.
    report: Callable[[int | None], None]
    supervisor_id: int | None = None
    #: Reports to the supervisor that this process wants to be replaced.
    report_used_up: Callable[[], None] = lambda: None
    #: Reports that its work begins: hooks have run.
    report_at_work: Callable[[], None] = lambda: None
    waiter: Waiter = field(default_factory=Waiter)
    stop_requested: bool = False
    #: Whether it has asked for a successor, and whether that is ready.
    wants_successor: bool = False
    retiring: bool = False
    #: The present activity, for the title of the process.
    activity: Callable[[], str] = str
    titled: bool = True
    #: Set by a worker.
    tasks: Tasks | None = None
    #: Called before the process exits immediately.
    before_exit: Callable[[], None] = lambda: None
    #: Whether not even to wait for interrupted tasks.
    giving_up: bool = False

    def __post_init__(self) -> None:
        self.database = QueueDatabase(
            self.using,
            quiet=self.options.silence_polling,
            timeouts=ResponseTimeouts(self.options),
        )
        self.lifecycle = Lifecycle(self.kind, self.name, self.using, tidy_connections)
        self.events = Events(self.kind, self.name, self.using)
        self._next_report = 0.0
        self._registration: ProcessRegistration | None = None

    def run(self, work: Callable[[], None]) -> None:
        """Call ``work()``, and announce the end of the process."""
        process_name.set(self.name)
        try:
            work()
        except BaseException as error:
            self.lifecycle.stopped(error)
            raise
        self.lifecycle.stopped()

    @property
    def stopping(self) -> bool:
        """Whether to take no more work: replaced, stop requested, or orphaned."""
        return self.retiring or self.stop_requested or self.orphaned

    @property
    def retires_at_leisure(self) -> bool:
        """Whether running tasks may take any time, because another process is at work already."""
        return self.retiring and not self.stop_requested and not self.orphaned

    def reopen_logs(self) -> None:
        """Open the log files of this process anew, and log what it does. Thread safe."""
        diagnosis.reopen_log_files()
        logger.info(
            "%s: %s",
            self.name,
            self.activity() or "at work",
            extra=about("process.status", kind=self.kind),
        )

    def log_stacks(self) -> None:
        """Log what each thread of this process does. Thread safe."""
        if self.tasks is None:
            diagnosis.log_stacks()
        else:
            self.tasks.log_stacks()

    def ask_for_successor(self) -> None:
        """Ask the supervisor for a process that replaces this one."""
        self.wants_successor = True
        self.report_used_up()

    def request_stop(self) -> None:
        """Take no more work. For a process that wants a successor, this says that there is one; a
        supervisor that stops, too, will interrupt what takes too long."""
        if self.wants_successor:
            self.retiring = True
        else:
            self.stop_requested = True

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor is dead."""
        return False

    def report_alive(self) -> None:
        """Report to the supervisor, even during an outage, that the main thread is responsive."""
        if time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + self.report_interval
            self.report(None)
            if self.titled:
                set_title(self.kind, self.activity())

    @property
    def report_interval(self) -> float:
        """Seconds between two reports; the main thread sleeps no longer."""
        return min(1.0, self.options.process_heartbeat_interval.total_seconds())

    def sleep(self, seconds: float) -> bool:
        """Report, and sleep at most ``seconds``; return whether the listener was notified."""
        self.report_alive()
        return self.waiter.wait(min(seconds, self.report_interval))

    def rest(self, seconds: float) -> None:
        """Sleep for ``seconds`` unless a stop is requested, reporting meanwhile."""
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            self.sleep(left)

    def register(self, metadata: dict[str, object]) -> ProcessRegistration | None:
        """Register the process, retrying through outages; return ``None`` if stopped before."""
        registration = ProcessRegistration(
            self.database,
            kind=self.kind,
            name=self.name,
            supervisor_id=self.supervisor_id,
            interval=self.options.process_heartbeat_interval,
            threshold=self.options.process_alive_threshold,
            metadata=metadata,
            journal=self.journal.path,
        )
        while not self.stopping:
            try:
                process_id = registration.register()
            except Unavailable as unavailable:
                self.rest(unavailable.pause)
            else:
                self.report(process_id)
                self.lifecycle.started(metadata)
                return registration
        self.journal.mark_clean_exit()
        return None

    def run_until_stopped(
        self, metadata: dict[str, object], run_round: Callable[[], float]
    ) -> None:
        """Register, call ``run_round()`` until a stop is requested, and deregister.

        ``run_round`` returns the seconds until the next round. A round that fails, because of the
        contents of a row, is logged and retried.
        """
        registration = self.register(metadata)
        if registration is None:
            return
        self._registration = registration
        while not self.stopping:
            try:
                if not registration.beat_if_due():
                    logger.warning(
                        "%s was declared dead; it ends",
                        self.name,
                        extra=about("process.declared_dead"),
                    )
                    break
                pause = min(contained(run_round), registration.until_beat)
            except Unavailable as unavailable:
                # Even with an overdue heartbeat: it cannot be sent sooner.
                pause = unavailable.pause
            except Exception:
                log_internal_error(
                    logger,
                    "A round of %s failed; retrying",
                    self.name,
                    extra=about("process.round_failed", kind=self.kind),
                )
                pause = min(FAILURE_PAUSE, registration.until_beat or FAILURE_PAUSE)
            self.rest(pause)
        self.lifecycle.stopping()
        self.journal.mark_clean_exit()
        self.deregister(registration)

    def save_metadata(self, metadata: dict[str, object]) -> None:
        """Store the metadata in the process's row if they have changed. Raises
        ``Unavailable``."""
        if self._registration is not None:
            self._registration.save_metadata(metadata)

    def deregister(self, registration: ProcessRegistration) -> None:
        """Delete the row of an orphaned process; otherwise the supervisor deletes it."""
        if self.orphaned:
            try:
                registration.deregister()
            except Unavailable:
                logger.warning(
                    "%s could not deregister; it will be pruned",
                    self.name,
                    extra=about("process.not_deregistered"),
                )
