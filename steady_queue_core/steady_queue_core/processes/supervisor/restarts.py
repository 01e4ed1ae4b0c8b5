"""Plans when to start the children of a supervisor, with a backoff for failing starts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from .managed_process import ManagedProcess, ProcessSpec

#: Seconds that a child must live after it was ready; a shorter life counts as a failed start.
MIN_LIFETIME = 2.0
#: Failed starts in a row that are retried at once.
MAX_QUICK_RESTARTS = 3
#: Longest pause between two starts, in seconds; the first is one second, each next one the double.
MAX_PAUSE = 60.0
#: Seconds until the next try when the system lacked the resources for a child.
START_RETRY_PAUSE = 5.0


class PlannedStart(NamedTuple):
    """A child that is to be started."""

    moment: float
    spec: ProcessSpec
    #: The child that it replaces, unless that was announced already.
    replaces: ManagedProcess | None = None


@dataclass
class Restarts:
    """Replaces children at once, but with growing pauses if those of one spec keep failing."""

    _planned: list[PlannedStart] = field(default_factory=list)
    _failures: dict[int, int] = field(default_factory=dict)

    def plan(self, child: ManagedProcess, *, at_work: bool) -> None:
        """Plan the replacement of a child that has ended; ``at_work``: while it was running jobs.

        That is not a failed start: each such end uses up attempts, so they come to an end.
        """
        spec, now = child.spec, time.monotonic()
        lived = now - child.ready_at if child.ready_at is not None else 0.0
        failed = lived < MIN_LIFETIME and not at_work
        failures = self._failures.get(id(spec), 0) + 1 if failed else 0
        self._failures[id(spec)] = failures
        excess = failures - MAX_QUICK_RESTARTS
        pause = min(MAX_PAUSE, 2.0 ** (excess - 1)) if excess > 0 else 0.0
        self._planned.append(PlannedStart(now + pause, spec, child))

    def plan_first(self, spec: ProcessSpec) -> None:
        """Plan the first child for ``spec``, at once."""
        self._planned.append(PlannedStart(time.monotonic(), spec))

    def plan_retry(self, spec: ProcessSpec, replaces: ManagedProcess | None = None) -> None:
        """Plan another try for ``spec`` after the system refused to start a child."""
        self._planned.append(PlannedStart(time.monotonic() + START_RETRY_PAUSE, spec, replaces))

    def plan_now(self, child: ManagedProcess) -> None:
        """Plan the replacement of ``child`` at once."""
        self._planned.append(PlannedStart(time.monotonic(), child.spec, child))

    def forget(self, spec: ProcessSpec) -> None:
        """Start no more children for ``spec``."""
        self._planned = [each for each in self._planned if each.spec is not spec]

    def take_due(self) -> list[PlannedStart]:
        """Remove and return the starts that are due."""
        now = time.monotonic()
        due = [each for each in self._planned if each.moment <= now]
        self._planned = [each for each in self._planned if each.moment > now]
        return due

    @property
    def pause(self) -> float:
        """Seconds until the next start is due."""
        moments = [each.moment for each in self._planned]
        return max(0.0, min(moments) - time.monotonic()) if moments else MAX_PAUSE
