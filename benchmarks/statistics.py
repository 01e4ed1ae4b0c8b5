"""The cost of statistics: workers that count beside workers that do not.

    python -m benchmarks.statistics --database postgres,mysql

Both have a queue of their own on the same server, and drain it in turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from django.db import connections

from benchmarks import testbed
from benchmarks.batch_costs import enqueue
from benchmarks.batch_workers import rate, workers
from benchmarks.columns import aligned

#: Statements that ask a server how much it has done, by ``connection.vendor``.
DONE = {
    "postgresql": "SELECT xact_commit + xact_rollback FROM pg_stat_database "
    "WHERE datname = current_database()",
    "mysql": "SHOW GLOBAL STATUS LIKE 'Questions'",
}
#: Seconds until PostgreSQL's processes have passed on what they have counted.
SETTLING = 1.5


class Turn(NamedTuple):
    """One drain."""

    jobs_per_second: float
    #: Statements or transactions for each job; ``None``: there is no server that counts them.
    done: float | None


class Costs(NamedTuple):
    """The turns of one database, without the first ones."""

    counted: list[Turn]
    uncounted: list[Turn]

    @property
    def ratio(self) -> float:
        """The median of the ratios of neighbouring turns."""
        pairs = zip(self.counted, self.uncounted, strict=True)
        return median(ours.jobs_per_second / theirs.jobs_per_second for ours, theirs in pairs)


def measure(with_statistics: str, without: str, parsed: argparse.Namespace) -> Costs:
    """Drain two queues, each with workers of its own, in turns."""
    turns: dict[str, list[Turn]] = {with_statistics: [], without: []}
    with (
        workers(with_statistics, parsed.processes, statistics=True),
        workers(without, parsed.processes, statistics=False),
    ):
        for number in range(1 + parsed.turns):
            # Which of them comes first alternates.
            for alias in turns if number % 2 else reversed(turns):
                turns[alias].append(drain(alias, parsed.jobs))
    for alias, is_counted in ((with_statistics, True), (without, False)):
        _check(alias, is_counted)
    return Costs(turns[with_statistics][1:], turns[without][1:])


def drain(alias: str, jobs: int) -> Turn:
    """Let the workers of a queue finish so many jobs."""
    polls = 0

    def counting(execute: Any, *arguments: Any) -> Any:
        nonlocal polls
        polls += 1
        return execute(*arguments)

    before = done(alias)
    with testbed.backend_on(alias), connections[alias].execute_wrapper(counting):
        found = rate(alias, lambda: enqueue("plain", jobs, jobs), jobs)
    after = done(alias)
    if before is None or after is None:
        return Turn(found, None)
    return Turn(found, (after - before - polls) / jobs)


def done(alias: str) -> int | None:
    """Return how many statements or transactions a server has carried out so far."""
    connection = connections[alias]
    statement = DONE.get(connection.vendor)
    if statement is None:
        return None
    if connection.vendor == "postgresql":
        time.sleep(SETTLING)
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[-1])


def _check(alias: str, is_counted: bool) -> None:
    """Make sure that a queue was counted, or was not: what is the same says nothing."""
    from steady_queue_core.models import Statistic

    # A stop stores what was counted last; there is none yet for a drain of less than ten seconds.
    deadline = time.monotonic() + 30
    rows = Statistic.objects.using(alias)
    while is_counted and not rows.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    if rows.exists() is not is_counted:
        raise AssertionError(f"{alias}: statistics are {'missing' if is_counted else 'there'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.statistics", description=__doc__)
    parser.add_argument("--database", metavar="NAME,...", help=", ".join(testbed.DATABASES))
    parser.add_argument("--jobs", type=int, default=12_000, metavar="N", help="of a turn")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="of each queue")
    parser.add_argument("--turns", type=int, default=9, metavar="N")
    parsed = parser.parse_args(arguments)
    testbed.set_up()
    rows = [["jobs/s (server's work a job)", "statistics", "none", "ratio", "range"]]
    for kind in testbed.chosen(parsed.database):
        aliases = f"{kind}_counted", f"{kind}_uncounted"
        try:
            with testbed.queues(kind, aliases) as version:
                print(version, file=sys.stderr, flush=True)
                rows.append([version, *_cells(measure(*aliases, parsed))])
        except LookupError as missing:
            print(f"{kind}: not measured: {missing}", file=sys.stderr)
    print(aligned(rows))
    return 0


def _cells(costs: Costs) -> list[str]:
    ratios = sorted(
        ours.jobs_per_second / theirs.jobs_per_second
        for ours, theirs in zip(costs.counted, costs.uncounted, strict=True)
    )
    return [
        *(_cell(turns) for turns in costs),
        f"{costs.ratio:.3f}",
        f"{ratios[0]:.3f} to {ratios[-1]:.3f}",
    ]


def _cell(turns: Sequence[Turn]) -> str:
    speed = f"{median(turn.jobs_per_second for turn in turns):,.0f}"
    counts = [turn.done for turn in turns if turn.done is not None]
    return f"{speed} ({median(counts):.4f})" if counts else speed


if __name__ == "__main__":
    sys.exit(main())
