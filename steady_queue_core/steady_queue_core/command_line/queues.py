"""``queues``: what waits and runs in each queue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..listings.processes import listed_processes
from ..listings.queues import STATES, ListedQueue, left_out, listed_queues
from ..listings.wording import duration
from .context import Context
from .databases import described, headings
from .exit_codes import DONE
from .formats import counted, instant, seconds
from .subcommand import Subcommand
from .table import tables

HEADINGS = ("queue", "ready", "oldest", *STATES, "workers", "")


class Queues(Subcommand):
    """The queues, one a line."""

    name = "queues"
    help = "list the queues with their jobs, pauses and workers"

    def run(self, context: Context) -> int:
        databases = context.databases.to_read()
        processes = {using: listed_processes(using) for using in databases}
        found = {using: listed_queues(using, processes[using]) for using in databases}
        left = {using: left_out(processes[using]) for using in databases}
        rows = {using: [as_row(each) for each in queues] for using, queues in found.items()}
        lines = tables(headings(databases), HEADINGS, rows, "No queue has jobs.")
        data = [
            {
                **described(using),
                "queues": [as_json(each) for each in queues],
                "left_out": left[using],
            }
            for using, queues in found.items()
        ]
        context.show({"databases": data}, chain(lines, told_of(sum(left.values()))))
        return DONE


def told_of(left: int) -> Iterator[str]:
    """Yield a line about queues that are left out, if there are any."""
    if left:
        yield f"Workers name {left:,} more queues, which were not looked at."


def as_row(queue: ListedQueue) -> list[str]:
    """Return the line of a queue in a table with the ``HEADINGS``."""
    note = "paused" if queue.is_paused else ""
    if queue.is_unserved:
        note = "<- no live worker serves this queue"
    return [
        queue.name,
        queue.ready.text,
        "" if queue.oldest_wait is None else duration(queue.oldest_wait),
        *(count.text for count in queue.counts.values()),
        str(queue.workers or "none"),
        note,
    ]


def as_json(queue: ListedQueue) -> dict[str, Any]:
    """Return what JSON says of a queue."""
    return {
        "queue": queue.name,
        "paused": queue.is_paused,
        "paused_since": instant(queue.paused_since),
        "ready": counted(queue.ready),
        "oldest_wait_s": seconds(queue.oldest_wait),
        **{state: counted(count) for state, count in queue.counts.items()},
        "workers": queue.workers,
    }
