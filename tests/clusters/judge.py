"""Judges what has become of the jobs: by what was promised, what was done, and what is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .acknowledgements import Acknowledgements
from .effects import Effect
from .tables import Tables

SECOND = 1_000_000_000
LIMIT = 2


@dataclass(frozen=True)
class Verdict:
    """What a fault has cost. All of ``broken`` must be zero."""

    acknowledged: int
    #: Acknowledged jobs that have not run to their end.
    lost: int
    #: Jobs that have started more than once, though nobody retries them.
    twice: int
    #: Calls that were retried without a unique key, and were stored already: unavoidable.
    stored_twice: int
    #: Calls that made two jobs in spite of a unique key, or without any retry.
    doubled: int
    failed: int
    stateless: int
    unfinished: int
    #: The most limited jobs at work at once, beyond the limit.
    over_limit: int
    slots_doubled: int
    slots_missed: int
    #: Supervisors that have ended before they were told to, or not in good order.
    supervisors_ended: int
    #: Seconds without a start, the longest time of them.
    silence: float
    #: Seconds from another writer to the first start; ``None``: there was no other writer.
    after_promotion: float | None

    @property
    def broken(self) -> dict[str, int]:
        """Return the promises that were not kept."""
        promises = (
            *("lost", "twice", "doubled", "failed", "stateless", "unfinished", "over_limit"),
            *("slots_doubled", "supervisors_ended"),
        )
        return {name: found for name in promises if (found := getattr(self, name))}


def judge(
    effects: Sequence[Effect],
    acknowledgements: Acknowledgements,
    tables: Tables,
    *,
    exits: Iterable[int] = (),
    broken_at: int | None = None,
    promoted_at: int | None = None,
) -> Verdict:
    starts = [each for each in effects if each.event == "start"]
    ended = {each.number for each in effects if each.event == "end"}
    each_job = Counter(each.job for each in starts)
    several = _numbers_of_several_jobs(starts)
    excusable = {
        number for number, kind in several.items()
        if kind != "unique" and acknowledgements.retries[number]
    }  # fmt: skip
    slots = {each.job for each in starts if each.kind == "slot"}
    return Verdict(
        acknowledged=len(acknowledgements.jobs),
        lost=len(acknowledgements.jobs.keys() - ended),
        twice=sum(count > 1 for count in each_job.values()),
        stored_twice=len(excusable),
        doubled=len(several) - len(excusable),
        failed=tables.failed,
        stateless=tables.stateless,
        unfinished=tables.unfinished,
        over_limit=max(0, most_at_once(effects) - LIMIT),
        slots_doubled=max(0, len(slots) - tables.runs),
        slots_missed=max(0, tables.span + 1 - tables.runs),
        supervisors_ended=sum(code != 0 for code in exits),
        silence=_silence(starts, broken_at),
        after_promotion=_first_after(starts, promoted_at),
    )


def most_at_once(effects: Iterable[Effect]) -> int:
    """Return how many limited jobs were at work at once. One that never ended is so for ever."""
    changes = sorted(
        (each.at, 1 if each.event == "start" else -1) for each in effects if each.kind == "limited"
    )
    at_work = most = 0
    for _, change in changes:
        at_work += change
        most = max(most, at_work)
    return most


def _numbers_of_several_jobs(starts: Iterable[Effect]) -> dict[int, str]:
    jobs: dict[int, set[str]] = defaultdict(set)
    kinds: dict[int, str] = {}
    for each in starts:
        if each.kind != "slot":
            jobs[each.number].add(each.job)
            kinds[each.number] = each.kind
    return {number: kinds[number] for number, found in jobs.items() if len(found) > 1}


def _silence(starts: Iterable[Effect], since: int | None) -> float:
    times = sorted(each.at for each in starts)
    return max(
        ((later - at) / SECOND for at, later in pairwise(times) if since is None or later >= since),
        default=0.0,
    )


def _first_after(starts: Iterable[Effect], at: int | None) -> float | None:
    if at is None:
        return None
    return min(((each.at - at) / SECOND for each in starts if each.at >= at), default=None)
