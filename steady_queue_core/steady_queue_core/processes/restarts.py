"""When to start a process in the place of one that ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .child import Child, Role

#: A process that ended sooner after it was ready, in seconds, counts as a failed start.
SHORT_LIFE = 2.0
#: Failed starts in a row that are replaced at once.
TOLERATED = 3
#: Longest pause between two starts, in seconds; the first is one second, each the double.
LONGEST_PAUSE = 60.0
#: Seconds until another try where the system had no room for a process.
REFUSAL_PAUSE = 5.0


@dataclass
class Restarts:
    """Replaces at once; of a role whose processes keep ending at once, ever more slowly."""

    _planned: list[tuple[float, Role]] = field(default_factory=list)
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
        self._planned.append((now + pause, role))

    def later(self, role: Role) -> None:
        """Plan a process for ``role`` that could not be started."""
        self._planned.append((time.monotonic() + REFUSAL_PAUSE, role))

    def now(self, role: Role) -> None:
        """Plan another process for ``role`` at once."""
        self._planned.append((time.monotonic(), role))

    def due(self) -> list[Role]:
        """Return, and forget, the roles to start now."""
        now = time.monotonic()
        due = [role for moment, role in self._planned if moment <= now]
        self._planned = [(moment, role) for moment, role in self._planned if moment > now]
        return due

    @property
    def pause(self) -> float:
        """Seconds until the next start is due."""
        moments = [moment for moment, _ in self._planned]
        return max(0.0, min(moments) - time.monotonic()) if moments else LONGEST_PAUSE
