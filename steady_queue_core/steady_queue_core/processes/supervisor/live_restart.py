"""HUP: the supervisor gives its place to new code, by ``exec`` under its own pid."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from django.db import InterfaceError, OperationalError, connections

from ...logging import about, get_logger
from ...models.readiness import require_tables
from .handover import Handover
from .invocation import Invocation
from .trial import Trial, report

logger = get_logger("steady_queue.supervisor")

#: What a handover contains changes with this number.
VERSION = 2


class LiveRestart:
    """Tries the new code in a process of its own; until it is known to start, the old code goes on.

    The supervisor calls ``advance`` in each round, and ``note_ended`` for each process that has
    ended and is none of its children.
    """

    def __init__(self, invocation: Invocation, *, threads: bool, handover: Handover | None) -> None:
        """``handover``: of the supervisor that was in the place of this one."""
        self.invocation, self._threads = invocation, threads
        #: Those that the supervisor serves.
        self.databases: list[str] = []
        self.had_terminal = has_terminal() if handover is None else handover.had_terminal
        #: Whether a restart was asked for that has not begun.
        self.is_requested = handover is not None and handover.is_overtaken
        #: Whether the new code can start: the supervisor is to give its place to it.
        self.is_due = False
        #: Called when a trial begins, and when the new code is refused.
        self.begun: Callable[[], None] = lambda: None
        self.refused: Callable[[], None] = lambda: None
        self._trial: Trial | None = None

    def report(self) -> None:
        """Report that this code can start, in a trial. Raises ``MigrationsMissing``."""
        # Without its database the queue starts as well, and waits for it.
        for using in self.databases:
            with suppress(OperationalError, InterfaceError):
                require_tables(connections[using])
        report({"version": VERSION, "threads": self._threads, "databases": self.databases})

    def _can_go_on(self, report: object) -> bool:
        """Whether code that reports this can go on with our processes. It may serve more
        databases."""
        match report:
            case {"version": version, "threads": threads, "databases": [*databases]}:
                same = (version, threads) == (VERSION, self._threads)
                return same and set(self.databases) <= set(databases)
        return False

    def request(self) -> None:
        """Ask for a restart. May be called by a signal handler."""
        self.is_requested = True

    @property
    def is_hung_up(self) -> bool:
        """Whether what looks like a request came from a terminal that was closed."""
        return self.is_requested and self.had_terminal and not has_terminal()

    def advance(self) -> None:
        """Begin the trial that was asked for, or look after the one that runs."""
        if self._trial is not None:
            self._trial.check_time()
            if (exit_code := self._trial.poll()) is not None:
                self.note_ended(self._trial.pid, exit_code)
        elif self.is_requested and not self.is_due:
            self.is_requested = False
            self._begin()

    def note_ended(self, pid: int, exit_code: int) -> None:
        """Take the end of the trial into account."""
        if self._trial is None or self._trial.pid != pid:
            return
        trial, self._trial = self._trial, None
        problem = trial.problem(exit_code, self._can_go_on)
        if problem:
            self._refuse(problem)
        else:
            self.is_due = True

    def give_up(self, error: OSError) -> None:
        """Note that this process could not be replaced."""
        self.is_due = False
        self._refuse(f"This process could not be replaced: {error}")

    def close(self) -> None:
        """End the trial that runs."""
        if self._trial is not None:
            self._trial.kill()

    def _begin(self) -> None:
        self.begun()
        logger.info("Trying the new code", extra=about("supervisor.restart_tried"))
        try:
            self._trial = Trial(self.invocation)
        except OSError as error:
            self._refuse(f"The trial could not be started: {error}")

    def _refuse(self, problem: str) -> None:
        self.refused()
        lines = problem.splitlines()
        logger.error(
            "The new code cannot take over, and the old one goes on. Mend it, and send HUP again. "
            "%s",
            lines[-1],
            extra=about("supervisor.restart_refused"),
        )
        for line in lines[:-1]:
            logger.error("New code: %s", line, extra=about("supervisor.restart_output"))


def has_terminal() -> bool:
    """Whether this process has a controlling terminal that is open."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
