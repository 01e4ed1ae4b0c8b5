"""The unique key of a job: stored with its metadata, told by its claim, and freed with its end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...durations import LONGEST
from ..entries import entry
from ..storable import LONGEST_KEY, is_storable

#: Until when a job has its key: its end, or its first start.
FINISHED, STARTED = "finished", "started"
#: What becomes of a call whose key another job has.
EXISTING, RAISE, REPLACE = "existing", "raise", "replace"

UNTIL = (FINISHED, STARTED)
ON_CONFLICT = (EXISTING, RAISE, REPLACE)

#: The name of the key in the metadata of a job.
NAME = "unique"


class JobKey(NamedTuple):
    """A key that at most one job has at a time."""

    key: str
    until: str = FINISHED
    #: How long the key stays with a job after its success.
    keep: timedelta = timedelta(0)
    on_conflict: str = EXISTING
    #: How long after the first of the calls that replaced each other the job is due at the latest,
    #: and when that was, unless the job is the first one; zero: it may be put off for ever.
    latest: timedelta = timedelta(0)
    since: datetime | None = None

    @property
    def ends_at_start(self) -> bool:
        """Whether the key is freed when the job starts, rather than when it ends."""
        return self.until == STARTED

    @property
    def refuses(self) -> bool:
        """Whether a call must not be enqueued while another job has the key."""
        return self.on_conflict == RAISE

    @property
    def replaces(self) -> bool:
        """Whether a call takes the place of a job that has not started."""
        return self.on_conflict == REPLACE

    @property
    def stored(self) -> tuple[Any, ...]:
        """The values, without those at the end that are as usual."""
        values: tuple[Any, ...] = tuple(self)
        defaults = list(self._field_defaults.values())
        while len(values) > 1 and values[-1] == defaults[len(values) - 2]:
            values = values[:-1]
        return values

    @classmethod
    def of(cls, values: object) -> JobKey | None:
        """Return what was stored, or ``None`` for anything else."""
        if not isinstance(values, tuple) or not 1 <= len(values) <= len(cls._fields):
            return None
        found = cls(*values)
        is_valid = (
            _is_key(found.key)
            and found.until in UNTIL
            and isinstance(found.keep, timedelta)
            and timedelta(0) <= found.keep <= LONGEST
            and found.on_conflict in ON_CONFLICT
            and isinstance(found.latest, timedelta)
            and timedelta(0) <= found.latest <= LONGEST
            and _is_instant(found.since)
        )
        return found if is_valid else None

    @classmethod
    def read(cls, metadata: object) -> JobKey | None:
        """Return the key in the metadata of a job; ``None``: it has none, or they are damaged."""
        return cls.of(entry(metadata, NAME))


def _is_key(key: object) -> bool:
    return isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and is_storable(key)


def _is_instant(since: object) -> bool:
    return since is None or (isinstance(since, datetime) and since.tzinfo is not None)
