"""What every child has: its settings, database, membership, and the wish to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...configuration import ResolvedOptions
from ...logging import about, get_logger, process_name
from .answer_limits import Limits
from .connections import tidy_connections
from .database import QueueDatabase, Unavailable
from .journal import RunJournal
from .lifecycle import Lifecycle
from .proctitle import set_title
from .registration import ProcessRegistration
from .waiter import Waiter

logger = get_logger("steady_queue.process")

#: Seconds between two rounds of which the first failed.
FAILURE_PAUSE = 5.0


class Tasks(Protocol):
    """What a worker lets its supervisor do with the tasks that run."""

    @property
    def running(self) -> int:
        """How many tasks run."""

    def break_off(self) -> None:
        """Break them off; again if they do not end."""

    def close(self) -> None:
        """Have their threads end."""


@dataclass
class ProcessContext:
    """The surroundings of a worker, dispatcher or scheduler."""

    options: ResolvedOptions
    using: str
    kind: str
    name: str
    journal: RunJournal
    #: Tells the supervisor that the process lives, and, with an id, that it is ready.
    report: Callable[[int | None], None]
    supervisor_id: int | None = None
    waiter: Waiter = field(default_factory=Waiter)
    stop_requested: bool = False
    #: What to say in the title of the process that it does just now.
    activity: Callable[[], str] = str
    titled: bool = True
    #: Set by a worker.
    tasks: Tasks | None = None
    #: What to say before the process ends at once.
    last_words: Callable[[], None] = lambda: None
    #: Whether not even to wait for tasks that were broken off.
    giving_up: bool = False

    def __post_init__(self) -> None:
        self.database = QueueDatabase(
            self.using, silent=self.options.silence_polling, limits=Limits(self.options)
        )
        self.lifecycle = Lifecycle(self.kind, self.name, self.using, tidy_connections)
        self._next_sign = 0.0
        self._registration: ProcessRegistration | None = None

    def live(self, work: Callable[[], None]) -> None:
        """Do a child's work, and tell the project of its end."""
        process_name.set(self.name)
        try:
            work()
        except BaseException as error:
            self.lifecycle.stopped(error)
            raise
        self.lifecycle.stopped()

    @property
    def stopping(self) -> bool:
        """Whether to take no more work: asked to stop, or orphaned."""
        return self.stop_requested or self.orphaned

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor is gone."""
        return False

    def sign_of_life(self) -> None:
        """Let the supervisor see, whatever the database does, that the main thread is at work."""
        if time.monotonic() >= self._next_sign:
            self._next_sign = time.monotonic() + self.sign_interval
            self.report(None)
            if self.titled:
                set_title(self.kind, self.activity())

    @property
    def sign_interval(self) -> float:
        """Seconds between two signs; the main thread sleeps no longer."""
        return min(1.0, self.options.process_heartbeat_interval.total_seconds())

    def sleep(self, seconds: float) -> bool:
        """Sleep at most ``seconds``, and give signs of life; say whether the bell has rung."""
        self.sign_of_life()
        return self.waiter.wait(min(seconds, self.sign_interval))

    def join(self, metadata: dict[str, object]) -> ProcessRegistration | None:
        """Register among the processes, however long the database takes; ``None``: stopped."""
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
        self.journal.leave_cleanly()
        return None

    def attend(self, metadata: dict[str, object], do: Callable[[], float]) -> None:
        """Register, do rounds until asked to stop, and leave.

        ``do`` returns the seconds until the next round is worth while. A round that fails, for
        what a row holds, is logged and tried again.
        """
        registration = self.join(metadata)
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
                pause = min(do(), registration.until_beat)
            except Unavailable as unavailable:
                # However overdue the heartbeat is: it cannot be given sooner.
                pause = unavailable.pause
            except Exception:
                logger.exception(
                    "%s could not do its work; it tries again",
                    self.name,
                    extra=about("process.round_failed", kind=self.kind),
                )
                pause = min(FAILURE_PAUSE, registration.until_beat or FAILURE_PAUSE)
            self.rest(pause)
        self.lifecycle.stopping()
        self.journal.leave_cleanly()
        self.leave(registration)

    def tell(self, metadata: dict[str, object]) -> None:
        """Have our row say what we do now, if that has changed. Raises ``Unavailable``."""
        if self._registration is not None:
            self._registration.tell(metadata)

    def rest(self, seconds: float) -> None:
        """Sleep for ``seconds`` unless asked to stop, and give signs of life."""
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            self.sleep(left)

    def leave(self, registration: ProcessRegistration) -> None:
        """Take the row away, unless the supervisor will do it."""
        if self.orphaned:
            try:
                registration.deregister()
            except Unavailable:
                logger.warning(
                    "%s could not deregister; it will be pruned",
                    self.name,
                    extra=about("process.not_deregistered"),
                )
