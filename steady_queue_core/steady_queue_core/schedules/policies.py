"""Policies about slots that passed while no scheduler ran, and about runs that overlap."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, get_args

from ..durations import from_words, in_words

#: ``"skip"``: none runs; ``"last"``: the last one runs; a timedelta: all run that are not older.
CatchUp = Literal["skip", "last"] | timedelta

#: What becomes of a run that is due while the previous one has not ended: ``"allow"``: both run;
#: ``"skip"``: it is left out; ``"queue"``: it waits for the end.
Overlap: TypeAlias = Literal["allow", "skip", "queue"]

OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)

NextAfter = Callable[[datetime], datetime | None]

#: Steps of the search for the last slot, so that few slots lie between a step and the present.
STEPS = (
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
    timedelta(days=31),
    timedelta(days=366),
    timedelta(days=3_660),
)


def to_text(catch_up: CatchUp) -> str:
    """Return the stored form of a policy: ``skip``, ``last`` or a duration, as ``36 hours``."""
    return in_words(catch_up) if isinstance(catch_up, timedelta) else catch_up


def from_text(text: str) -> CatchUp:
    """Return the policy that ``to_text`` wrote; raise ValueError for any other text."""
    if text == "skip":
        return "skip"
    return "last" if text == "last" else from_words(text)


def following(
    next_after: NextAfter, catch_up: CatchUp, last: datetime, present: datetime
) -> datetime | None:
    """Return the slot to enqueue after ``last``: one that was missed, or the next one; ``None`` if
    there is none."""
    if catch_up == "last":
        return _latest(next_after, last, present)
    if isinstance(catch_up, timedelta):
        return next_after(max(last, present - catch_up))
    return next_after(max(last, present))


def _latest(next_after: NextAfter, last: datetime, present: datetime) -> datetime | None:
    """Return the last slot up to ``present``, or the next one if none passed after ``last``."""
    for step in STEPS:
        slot = next_after(max(last, present - step))
        if (slot is not None and slot <= present) or present - step <= last:
            break
    while slot is not None and slot <= present:
        later = next_after(slot)
        if later is None or later > present:
            break
        slot = later
    return slot
