"""Who may start now, and when the others come back: one key, at one instant.

There are two clocks. The *gate* counts actual starts: it is when the last of them would be over, if
they came at their pace. The *line* is the next free slot for jobs in excess. Slots keep their
distance, and with it the order of the jobs: where the gate is behind, all are shifted alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...durations import LONGEST
from ...timezones import MICROSECOND
from .pace import Pace

#: How late a job may come for its slot without losing its place.
GRACE = 5_000_000
#: How long, beyond one slot, nobody starts in a line whose jobs are gone.
DESERTED = 5_000_000
#: No line is longer.
LONGEST_LINE = LONGEST // MICROSECOND
#: Jobs come back at multiples of this, several at once where they are many: each time that some are
#: due costs a dispatch, and wakes all workers.
ROUND = 25_000


@dataclass(frozen=True, slots=True)
class Turn:
    """What becomes of a job: it starts now, or comes back at a time that belongs to a slot."""

    starts: bool
    due: int = 0
    slot: int = 0


@dataclass(slots=True)
class Turnstile:
    """The state of a key at ``present``. All times are microseconds since 1970."""

    present: int
    gate: int
    line: int
    shift: int
    #: Jobs that were sent away now although they had a slot: the gate opens for them first.
    _sent_away: int = 0

    def take_turn(self, pace: Pace, slot: int | None) -> Turn:
        """Decide about the next job. Those with a slot come first, in the order of their slots.

        One with a negative slot starts before that if the gate is open: somebody has asked for it.
        """
        self._bound(pace)
        if slot is not None and slot < 0:
            if self.opens_at(pace) <= self.present:
                return self._start(pace)
            slot = -slot
        if slot is not None and slot < self.line:
            return self._returned(pace, slot)
        if self._is_empty(pace):
            self.line, self.shift = self.present, 0
            if self.opens_at(pace) <= self.present:
                return self._start(pace)
        return self._reserve(pace)

    def _returned(self, pace: Pace, slot: int) -> Turn:
        opens_at = self.opens_at(pace)
        if slot + self.shift > self.present + ROUND:
            # All slots were put off meanwhile: whoever was sent away before comes first.
            return Turn(starts=False, due=rounded(max(slot + self.shift, opens_at)), slot=slot)
        if opens_at <= self.present:
            return self._start(pace)
        if self.present - (slot + self.shift) > GRACE:
            return self._reserve(pace)
        # By what the gate is behind, but not by what the job itself is late.
        behind = min(opens_at - slot, self.shift + opens_at - self.present)
        self.shift = max(self.shift, behind)
        self._sent_away += 1
        return Turn(starts=False, due=rounded(max(slot + self.shift, opens_at)), slot=slot)

    def _reserve(self, pace: Pace) -> Turn:
        slot = max(self.line, self.opens_at(pace) - self.shift)
        self.line = slot + pace.time_of(1)
        return Turn(starts=False, due=rounded(slot + self.shift), slot=slot)

    def _start(self, pace: Pace) -> Turn:
        self.gate = max(self.gate, self.present) + pace.time_of(1)
        return Turn(starts=True)

    def opens_at(self, pace: Pace) -> int:
        """Return when the next job may start after those that were sent away."""
        return self.gate - pace.allowance + pace.time_of(self._sent_away)

    def _is_empty(self, pace: Pace) -> bool:
        """Whether nobody is in the line: all slots have passed, or nobody comes for them."""
        is_over = self.line + self.shift <= self.present
        return is_over or self.present - self.gate > pace.time_of(1) + DESERTED

    def _bound(self, pace: Pace) -> None:
        """Take times that cannot be, after the clock was set back or the rate was changed, for the
        latest that can."""
        self.gate = min(self.gate, self.present + pace.allowance + pace.time_of(1))
        if not 0 <= self.shift <= LONGEST_LINE or self.line > self.present + LONGEST_LINE:
            self.line, self.shift = self.present, 0


def rounded(due: int) -> int:
    """Return when a job comes back that is due then."""
    return -(-due // ROUND) * ROUND
