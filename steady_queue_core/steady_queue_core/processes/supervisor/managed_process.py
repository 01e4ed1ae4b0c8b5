"""A child of the supervisor, whether it is a process or a thread."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...configuration import ResolvedOptions
from ...errors import SteadyQueueError
from ...logging import about, get_logger
from ..base.context import ProcessContext
from ..base.journal import RunJournal

logger = get_logger("steady_queue.supervisor")

#: Why a supervisor ends a child: it hung, was kept by tasks that did not end, or took too long to
#: stop.
FROZEN, HELD, STOP = "frozen", "held", "stop"


class Runnable(Protocol):
    """A worker, dispatcher or scheduler."""

    def run(self) -> None:
        """Work until a stop is requested."""


def _not_built(context: ProcessContext) -> Runnable:
    raise NotImplementedError("a process of former code is not started again")


@dataclass(frozen=True)
class ProcessSpec:
    """Describes one process of the topology; one child at a time runs it."""

    kind: str
    #: The work of the process, for people to read.
    description: str
    #: How many jobs it can hold.
    capacity: int
    build: Callable[[ProcessContext], Runnable] = _not_built
    #: Whether it has a row in the table of processes.
    registers: bool = True
    #: Descriptors of its supervisor that it needs.
    descriptors: frozenset[int] = frozenset()


@dataclass(eq=False)
class ManagedProcess(ABC):
    """A worker, dispatcher or scheduler as its supervisor sees it."""

    spec: ProcessSpec
    name: str
    pid: int
    journal: RunJournal
    started_at: float = field(default_factory=time.monotonic)
    #: Until when it must have reported ready, or at least alive.
    deadline: float = 0.0
    ready_at: float | None = None
    #: When it was last known to be alive, on our own clock.
    seen_at: float = field(default_factory=time.monotonic)
    #: Whether its work has begun, as a worker reports it.
    is_at_work: bool = False
    #: Whether it has asked to be replaced, and whether that was planned.
    wants_successor: bool = False
    is_succeeded: bool = False
    #: The living process that stops when this one is at work.
    predecessor: ManagedProcess | None = None
    #: Whether it is to have no successor: others do its work, or will.
    is_retiring: bool = False
    #: Until when its tasks have to end, if it is retiring and that is limited.
    drains_until: float | None = None
    #: When to kill it: it was declared dead and replaced, but may still wake up and exit by itself.
    kill_at: float | None = None
    #: The jobs for which it was killed: they were to end, and held its interpreter.
    held_by: frozenset[int] = frozenset()
    #: Why the supervisor ends it, if it does not end by itself.
    ended_for: str = ""
    #: The exit status, negative for the signal that killed it; ``None`` for a thread.
    exit_code: int | None = None
    #: Whether tasks of it may still hang in this process.
    left_tasks: bool = False

    @property
    def is_in_place(self) -> bool:
        """Whether it does its work: nobody has to do it in its stead."""
        is_working = self.is_at_work if self.spec.capacity else self.ready_at is not None
        return is_working and self.kill_at is None and not self.is_retiring

    def note_alive(self, timeout: float, *, ready: bool) -> None:
        """Record that the child is alive, and whether it is ready."""
        self.seen_at = time.monotonic()
        self.deadline = self.seen_at + timeout
        if ready and self.ready_at is None:
            self.ready_at = self.seen_at

    def log_end(self, how: str) -> None:
        """Log that the child has ended, and how."""
        logger.log(
            logging.INFO if self.journal.exited_cleanly else logging.WARNING,
            "%s (pid %d) %s",
            self.name,
            self.pid,
            how,
            extra=about(
                "process.ended",
                child=self.name,
                child_pid=self.pid,
                kind=self.spec.kind,
                exit_code=self.exit_code,
            ),
        )

    @abstractmethod
    def read_reports(self, timeout: float) -> None:
        """Process the reports that have arrived from the child."""

    @abstractmethod
    def request_stop(self) -> None:
        """Ask the child to take no more work, and to end when its tasks have."""

    @abstractmethod
    def retire(self) -> None:
        """Tell the child that others are at work in its place: it is to take no more work, and its
        tasks may take any time. May be repeated."""

    @abstractmethod
    def reopen_logs(self) -> None:
        """Have the child open its log files anew, and log what it does."""

    @abstractmethod
    def log_stacks(self) -> None:
        """Have the child log what its threads do."""

    @abstractmethod
    def terminate(self) -> None:
        """Ask the child to interrupt its tasks and end immediately, but cleanly."""

    @abstractmethod
    def kill(self) -> None:
        """End the child, whatever its state."""

    @abstractmethod
    def close(self) -> None:
        """Release the supervisor's resources for the child; its journal stays for the rescue."""

    @abstractmethod
    def lost_error(self, how: str) -> SteadyQueueError:
        """Return the error of jobs that were running when the child ended; ``how`` says how."""


class Launcher(Protocol):
    """Starts children and detects which have ended: as processes, or as threads."""

    #: Whether no other thread may exist in this process while it starts a child.
    wants_no_threads: bool
    #: Descriptors that only those children keep whose spec names them.
    reserved: set[int]

    def start(
        self, spec: ProcessSpec, options: ResolvedOptions, using: str, supervisor_id: int | None
    ) -> ManagedProcess:
        """Start a child for ``spec``. Raises ``OSError`` if the system lacks the resources."""

    def ended(self) -> list[tuple[ManagedProcess, str]]:
        """Return the children that have ended, until they are removed, and how each has ended."""
