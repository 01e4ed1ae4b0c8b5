"""Dead processes whose rescue waits for a lock, so that the others are rescued meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...models.process import Process
from ..base.database import Unavailable

#: Locks that are waited for in a round, one after the other: our heartbeat has to be in time.
MOST = 3


class HeldUp:
    """The processes that met a lock in the last round, such as of a frozen task's transaction."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._names)

    def rescue_each(
        self, processes: Iterable[Process], rescue: Callable[[Process], object]
    ) -> None:
        """Rescue the processes of a round; last come those that met a lock before. Raises
        ``Unavailable`` during an outage."""
        held_up: set[str] = set()
        for process in sorted(processes, key=lambda each: each.name in self._names):
            try:
                rescue(process)
            except Unavailable as unavailable:
                if unavailable.lost:
                    raise
                held_up.add(process.name)
                if len(held_up) == MOST:
                    break
        self._names = held_up
