"""The jobs that have run for longest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from ..listings.processes import ListedProcess
from .busy import Claim
from .registered import Moment
from .total import Total

#: Fewer attempts tell nothing of how long the next one takes.
LEAST = 20


@dataclass(frozen=True)
class LongRun:
    """A job that runs."""

    job_id: int
    task: str
    queue: str
    since: timedelta
    #: Who has claimed it, if that is registered.
    process: ListedProcess | None
    #: So many times as long as 95 % of the task's attempts at most; ``None``: not known.
    times_usual: float | None


def longest_runs(
    claims: Iterable[Claim],
    moment: Moment,
    processes: Iterable[ListedProcess],
    by_task: Mapping[str, Total],
) -> list[LongRun]:
    """Return what is known of these jobs."""
    known = {each.pk: each for each in processes}
    found = []
    for each in claims:
        since = max(timedelta(0), moment.present - each.since)
        times = _times_usual(since, by_task.get(each.task))
        process = known.get(each.process_id)
        found.append(LongRun(each.job_id, each.task, each.queue, since, process, times))
    return found


def _times_usual(since: timedelta, total: Total | None) -> float | None:
    if total is None or total.ended + total.retried < LEAST:
        return None
    usual = total.run(0.95)
    return since.total_seconds() * 1000 / usual if usual else None
