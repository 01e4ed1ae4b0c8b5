"""A member of a supervisor's team, whether it is a process or a thread."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...errors import SteadyQueueError
from ..base.context import ProcessContext
from ..base.journal import RunJournal


class Actor(Protocol):
    """What a child does."""

    def run(self) -> None:
        """Work until asked to stop."""


@dataclass(frozen=True)
class ProcessSpec:
    """A place in the supervisor's team, filled by one child at a time."""

    kind: str
    #: What the child does, in words for people.
    description: str
    #: How many jobs it can hold.
    slots: int
    build: Callable[[ProcessContext], Actor]


@dataclass(eq=False)
class ManagedProcess(ABC):
    """A worker, dispatcher or scheduler, seen from its supervisor."""

    spec: ProcessSpec
    name: str
    pid: int
    journal: RunJournal
    started_at: float = field(default_factory=time.monotonic)
    #: Until when it must have reported ready, or at least alive.
    deadline: float = 0.0
    ready_at: float | None = None
    #: When it last gave a sign of life, by our own clock.
    seen_at: float = field(default_factory=time.monotonic)
    #: When to kill it: it was declared dead, and may yet wake up and end of itself.
    condemned_until: float | None = None
    #: What it returned to the system, negative: the signal that killed it; a thread has none.
    exit_code: int | None = None
    #: Whether something that it ran may hang in this process still.
    broke_off: bool = False

    def saw_sign(self, patience: float, *, ready: bool) -> None:
        """Note a sign of life, and whether it says that the child is ready."""
        self.seen_at = time.monotonic()
        self.deadline = self.seen_at + patience
        if ready and self.ready_at is None:
            self.ready_at = self.seen_at

    @abstractmethod
    def read_reports(self, patience: float) -> None:
        """Take over what the child has reported since."""

    @abstractmethod
    def ask_to_stop(self) -> None:
        """Have it take no more work, and end when its tasks have."""

    @abstractmethod
    def break_off(self) -> None:
        """Have it end at once, in good order."""

    @abstractmethod
    def kill(self) -> None:
        """End it, whatever it does."""

    @abstractmethod
    def forget(self) -> None:
        """Give up what the supervisor held for the child. Its journal stays for its recovery."""

    @abstractmethod
    def lost(self, how: str) -> SteadyQueueError:
        """Return the error of the jobs that it was running when it ended as ``how`` says."""


class Launcher(Protocol):
    """Starts children, and tells which have ended: as processes, or as threads."""

    #: Whether no other thread may live in this process while it starts one.
    wants_no_threads: bool

    def start(
        self, spec: ProcessSpec, supervisor_id: int | None, siblings: list[ManagedProcess]
    ) -> ManagedProcess:
        """Start a child for ``role``. Raises ``OSError`` when the system has no room for one."""

    def ended(self, children: list[ManagedProcess]) -> list[tuple[ManagedProcess, str]]:
        """Return those of ``children`` that have ended, each with how; each once."""
