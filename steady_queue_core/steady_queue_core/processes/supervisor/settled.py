"""Whether nothing is left to run in any of several databases."""

from __future__ import annotations

from collections.abc import Sequence

from .fleet import Fleet

#: How often all of several databases have to be empty, one look after the other.
ROUNDS = 3


class Settled:
    """Takes the looks of several fleets together."""

    def __init__(self, fleets: Sequence[Fleet]) -> None:
        self._fleets = fleets
        self._rounds = 0

    def look(self) -> bool:
        """Whether all databases are drained."""
        found = [fleet.is_drained for fleet in self._fleets]
        if False in found:
            self._rounds = 0
        elif None not in found:
            self._rounds += 1
            for fleet in self._fleets:
                fleet.maintenance.drained = None
        # A task of one database may have enqueued to another that was looked at before.
        return self._rounds >= (1 if len(found) == 1 else ROUNDS)
