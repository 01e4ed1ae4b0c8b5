"""``status``: one look at the queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..dialects.database import Database
from ..listings.processes import ListedProcess, listed_processes
from ..listings.queues import ListedQueue, left_out, listed_queues
from ..listings.recurring import ListedSchedule, listed_schedules
from ..listings.wording import duration
from .context import Context
from .databases import described, headings
from .exit_codes import DONE
from .formats import instant
from .queues import HEADINGS, as_json, as_row, told_of
from .subcommand import Subcommand
from .table import table


class Status(Subcommand):
    """Queues, paused ones, schedules and processes."""

    name = "status"
    help = "show queues, schedules and processes at a glance"

    def run(self, context: Context) -> int:
        databases = context.databases.to_read()
        found = {using: Snapshot.of(using) for using in databases}
        lines = [
            line
            for using, heading in headings(databases)
            for line in (*heading, *found[using].lines())
        ]
        context.show({"databases": [each.as_json() for each in found.values()]}, lines)
        return DONE


@dataclass(frozen=True)
class Snapshot:
    """What there is in one database at one moment."""

    using: str
    queues: list[ListedQueue]
    schedules: list[ListedSchedule]
    processes: list[ListedProcess]

    @classmethod
    def of(cls, using: str) -> Snapshot:
        processes = listed_processes(using)
        queues = listed_queues(using, processes)
        return cls(using, queues, listed_schedules(using, next_runs=1), processes)

    @property
    def live(self) -> int:
        return sum(each.is_live for each in self.processes)

    @property
    def next_schedule(self) -> ListedSchedule | None:
        """The schedule that is due next."""
        due = [each for each in self.schedules if each.outlook.next_runs]
        return min(due, key=lambda each: each.outlook.next_runs[0], default=None)

    def as_json(self) -> dict[str, Any]:
        upcoming = self.next_schedule
        return {
            **described(self.using),
            "queues": [as_json(each) for each in self.queues],
            "schedules": {
                "count": len(self.schedules),
                "next_key": None if upcoming is None else upcoming.key,
                "next_run": None if upcoming is None else instant(upcoming.outlook.next_runs[0]),
            },
            "processes": {"live": self.live, "stale": len(self.processes) - self.live},
        }

    def lines(self) -> Iterator[str]:
        if self.queues:
            yield from table(HEADINGS, [as_row(each) for each in self.queues])
        else:
            yield "No queue has jobs."
        yield from told_of(left_out(self.processes))
        yield f"paused: {', '.join(self._paused) or 'none'}"
        yield f"schedules: {len(self.schedules)}{self._upcoming}"
        yield f"processes: {self.live} live, {len(self.processes) - self.live} stale"

    @property
    def _paused(self) -> list[str]:
        return [each.name for each in self.queues if each.is_paused]

    @property
    def _upcoming(self) -> str:
        upcoming = self.next_schedule
        if upcoming is None:
            return ""
        until = upcoming.outlook.next_runs[0] - Database.of(self.using).current_time()
        return f" (next: {upcoming.key} in {duration(max(until, until * 0))})"
