"""When to start a process in the place of one that ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from .child import ManagedProcess, ProcessSpec

#: A process that ended sooner after it was ready, in seconds, counts as a failed start.
SHORT_LIFE = 2.0
#: Failed starts in a row that are replaced at once.
TOLERATED = 3
#: Longest pause between two starts, in seconds; the first is one second, each the double.
LONGEST_PAUSE = 60.0
#: Seconds until another try where the system had no room for a process.
REFUSAL_PAUSE = 5.0


class Successor(NamedTuple):
    """A child that is to be started."""

    moment: float
    spec: ProcessSpec
    #: Whose place it takes, if that has not been told yet.
    of: ManagedProcess | None = None


@dataclass
class Restarts:
    """Replaces at once; of a role whose processes keep ending at once, ever more slowly."""

    _planned: list[Successor] = field(default_factory=list)
    _failures: dict[int, int] = field(default_factory=dict)

    def plan(self, child: ManagedProcess, *, at_work: bool) -> None:
        """Plan a successor for ``child``, which has ended; ``at_work``: while it ran jobs.

        That is no failed start: each such end uses up attempts, so they come to an end.
        """
        spec, now = child.spec, time.monotonic()
        lived = now - child.ready_at if child.ready_at is not None else 0.0
        failures = self._failures.get(id(spec), 0) + 1 if lived < SHORT_LIFE and not at_work else 0
        self._failures[id(spec)] = failures
        excess = failures - TOLERATED
        pause = min(LONGEST_PAUSE, 2.0 ** (excess - 1)) if excess > 0 else 0.0
        self._planned.append(Successor(now + pause, spec, child))

    def first(self, spec: ProcessSpec) -> None:
        """Plan the first process for ``role``, at once."""
        self._planned.append(Successor(time.monotonic(), spec))

    def later(self, spec: ProcessSpec) -> None:
        """Plan a process for ``role`` that could not be started."""
        self._planned.append(Successor(time.monotonic() + REFUSAL_PAUSE, spec))

    def now(self, child: ManagedProcess) -> None:
        """Plan a successor for ``child`` at once."""
        self._planned.append(Successor(time.monotonic(), child.spec, child))

    def due(self) -> list[Successor]:
        """Return, and forget, those to start now."""
        now = time.monotonic()
        due = [each for each in self._planned if each.moment <= now]
        self._planned = [each for each in self._planned if each.moment > now]
        return due

    @property
    def pause(self) -> float:
        """Seconds until the next start is due."""
        moments = [each.moment for each in self._planned]
        return max(0.0, min(moments) - time.monotonic()) if moments else LONGEST_PAUSE
