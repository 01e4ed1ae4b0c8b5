"""Processes that have ended, but not by themselves: when, why, and what they held."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..models import ProcessEnd
from ..models.job import parse_job_id
from .damage import read_in_order
from .keyset import START, ModelListing, Order

#: What the words for a reason mean, for a column.
REASONS = {
    "signal": "killed by a signal",
    "memory": "killed for want of memory",
    "exit": "exited",
    "error": "failed",
    "heartbeat": "no heartbeat",
    "found": "found dead",
    "frozen": "froze",
    "held": "held by tasks",
    "stop": "did not stop in time",
}
#: What became of jobs, in the order in which it is told.
ENDINGS = {
    "failed": "failed",
    "retried": "to run again",
    "released": "given back",
    "finished": "finished",
}
#: The latest ones come first.
ORDER = Order(ProcessEnd, ("-id",))


@dataclass(frozen=True)
class EndedJob:
    """A job that the process had claimed."""

    job_id: int
    task: str
    queue: str
    #: What became of the claim, and whether an attempt was lost with it.
    ending: str
    lost: bool

    @classmethod
    def read(cls, found: Any) -> EndedJob | None:
        """Read what was stored; ``None``: it is damaged."""
        if not isinstance(found, dict) or parse_job_id(str(found.get("id"))) is None:
            return None
        task, queue, ending = (str(found.get(name, "")) for name in ("task", "queue", "ending"))
        return cls(int(found["id"]), task, queue, ending, found.get("lost") is True)


@dataclass(frozen=True)
class ListedEnd:
    """The end of a process, as far as its row can be read."""

    row: ProcessEnd

    @cached_property
    def details(self) -> dict[str, Any]:
        """What else is known."""
        try:
            found = json.loads(self.row.details)
        except (ValueError, TypeError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def reason(self) -> str:
        """Why it ended, in a few words."""
        return REASONS.get(self.row.reason, str(self.row.reason))

    @property
    def why(self) -> str:
        """Why it ended, in a sentence."""
        return str(self.details.get("why") or "")

    @property
    def queues(self) -> list[str]:
        """The entries of the queue list of a worker."""
        found = self.details.get("queues")
        return [str(each) for each in found] if isinstance(found, list) else []

    @property
    def jobs(self) -> list[EndedJob]:
        """Some of the jobs that it held."""
        found = self.details.get("jobs")
        read = [EndedJob.read(each) for each in found] if isinstance(found, list) else []
        return [each for each in read if each is not None]

    @property
    def endings(self) -> dict[str, int]:
        """How many of its claims ended in which way."""
        found = self.details.get("endings")
        known = found if isinstance(found, dict) else {}
        return {name: known[name] for name in ENDINGS if type(known.get(name)) is int}

    @property
    def fate(self) -> str:
        """What became of its jobs, in words."""
        return ", ".join(f"{number:,} {ENDINGS[name]}" for name, number in self.endings.items())


class EndListing(ModelListing):
    """The ends, the latest first."""

    @property
    def order(self) -> Order:
        return ORDER


def listed_ends(using: str, limit: int) -> list[ListedEnd]:
    """Return the latest ends in a database."""
    rows = ProcessEnd.objects.using(using)
    found, _ = read_in_order(rows, [key for (key,) in ORDER.keys(rows, START, limit)])
    return [ListedEnd(row) for row in found]
