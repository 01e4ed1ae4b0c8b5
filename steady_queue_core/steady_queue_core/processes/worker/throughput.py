"""How fast the jobs at one place go by, and how many it should have at hand."""

from __future__ import annotations

#: Seconds of work to keep at hand, so that no room stays empty while the database is asked. When
#: a host is lost with its run journals, nobody can tell which of these jobs had started.
HORIZON = 0.0125
#: The same for jobs so short that a statement for a few of them would cost more than they do.
SHORT, HORIZON_OF_SHORT = 0.001, 0.02
#: Weight of the newest observation in the running mean.
WEIGHT = 0.2


class Throughput:
    """Learns from how long jobs have kept one of ``size`` rooms; asks for ``most`` beyond them."""

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        #: So slow that none is expected to end within the horizon.
        self._slow = 2 * size * HORIZON
        self._seconds = self._slow

    def observe(self, seconds: float) -> None:
        """Note how long a job kept its room, or a batch's mean."""
        self._seconds += (seconds - self._seconds) * WEIGHT

    def observe_stall(self) -> None:
        """Note that jobs waited for room in vain."""
        self._seconds = max(self._seconds, self._slow)

    @property
    def prefetch(self) -> int:
        """How many jobs will find room within the horizon."""
        horizon = HORIZON_OF_SHORT if self._seconds < SHORT else HORIZON
        return min(self.most, int(self.size * horizon / max(self._seconds, 1e-6)))
