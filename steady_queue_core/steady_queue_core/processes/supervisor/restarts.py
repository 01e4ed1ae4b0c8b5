"""When to start a process in the place of one that ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from .child import Child, Role

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
    role: Role
    #: Whose place it takes, if that has not been told yet.
    of: Child | None = None


@dataclass
class Restarts:
    """Replaces at once; of a role whose processes keep ending at once, ever more slowly."""

    _planned: list[Successor] = field(default_factory=list)
    _failures: dict[int, int] = field(default_factory=dict)

    def plan(self, child: Child, *, at_work: bool) -> None:
        """Plan a successor for ``child``, which has ended; ``at_work``: while it ran jobs.

        That is no failed start: each such end uses up attempts, so they come to an end.
        """
        role, now = child.role, time.monotonic()
        lived = now - child.ready_at if child.ready_at is not None else 0.0
        failures = self._failures.get(id(role), 0) + 1 if lived < SHORT_LIFE and not at_work else 0
        self._failures[id(role)] = failures
        excess = failures - TOLERATED
        pause = min(LONGEST_PAUSE, 2.0 ** (excess - 1)) if excess > 0 else 0.0
        self._planned.append(Successor(now + pause, role, child))

    def first(self, role: Role) -> None:
        """Plan the first process for ``role``, at once."""
        self._planned.append(Successor(time.monotonic(), role))

    def later(self, role: Role) -> None:
        """Plan a process for ``role`` that could not be started."""
        self._planned.append(Successor(time.monotonic() + REFUSAL_PAUSE, role))

    def now(self, child: Child) -> None:
        """Plan a successor for ``child`` at once."""
        self._planned.append(Successor(time.monotonic(), child.role, child))

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
