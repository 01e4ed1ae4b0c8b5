"""Dead processes whose rescue waits for a lock, so that the others are rescued meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from ...models.process import Process
from ..base.database import Unavailable

#: Most seconds of a round in which locks are waited for, one after the other.
LONGEST = 10.0


class HeldUp:
    """The processes that met a lock, such as of a frozen task's transaction."""

    def __init__(self, threshold: timedelta) -> None:
        # Our own heartbeat has to be in time.
        self._patience = min(LONGEST, threshold.total_seconds() / 8)
        #: When each was tried last.
        self._tried: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._tried)

    def __contains__(self, process: Process) -> bool:
        return process.name in self._tried

    def rescue_each(
        self, processes: Sequence[Process], rescue: Callable[[Process], object]
    ) -> None:
        """Rescue the processes of a round: last come those that met a lock before, first the one
        that was tried longest ago. Raises ``Unavailable`` during an outage."""
        known = {each.name: self._tried[each.name] for each in processes if each in self}
        waited = 0.0
        for process in sorted(processes, key=lambda each: known.get(each.name, 0.0)):
            began = time.monotonic()
            try:
                rescue(process)
            except Unavailable as unavailable:
                if unavailable.lost:
                    raise
                known[process.name] = time.monotonic()
                waited += known[process.name] - began
                if waited >= self._patience:
                    break
            else:
                known.pop(process.name, None)
        self._tried = known
