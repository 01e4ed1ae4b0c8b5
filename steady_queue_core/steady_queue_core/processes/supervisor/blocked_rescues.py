"""Dead processes whose rescue waits for a lock, so that the others are rescued meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...models.process import Process
from ...project_code import contained
from ..base.database import Unavailable

logger = get_logger("steady_queue.supervisor")

#: Most seconds of a round in which locks are waited for, one after the other.
LONGEST = 10.0


class BlockedRescues:
    """The processes that met a lock, such as of a frozen task's transaction, or an error."""

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
        """Rescue the processes of a round, whatever becomes of one of them: last come those that
        were tried in vain before, first the one that was tried longest ago.

        Raises ``Unavailable`` during an outage.
        """
        known = {each.name: self._tried[each.name] for each in processes if each in self}
        waited = 0.0
        for process in sorted(processes, key=lambda each: known.get(each.name, 0.0)):
            began = time.monotonic()
            try:
                contained(rescue, process)
            except Unavailable as unavailable:
                if unavailable.lost and not unavailable.refused:
                    raise
                known[process.name] = time.monotonic()
                waited += known[process.name] - began
                if waited >= self._patience:
                    break
            except Exception:
                log_internal_error(
                    logger,
                    "The jobs of %s could not be recovered; retrying",
                    process,
                    extra=about("process.not_recovered", lost_process=process.name),
                )
                known[process.name] = time.monotonic()
            else:
                known.pop(process.name, None)
        self._tried = known
