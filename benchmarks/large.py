"""The cost of claiming and listing with very many ready jobs.

    python -m benchmarks.large --database postgres,mysql

Two queue databases on one server, a small and a large one, take turns claim by claim, so that the
ratio of the two suffers little from other work on the machine. After each claim its jobs are
finished, and others enqueued in their place.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db import connections

from benchmarks import testbed
from benchmarks.columns import aligned
from benchmarks.jobs import finished, new_job
from steady_queue_core.dialects import QueueSelector, dialect_for, portable, tables

#: What a claim may cost at the large size, as a multiple of the small one.
LIMIT = 1.5
#: Milliseconds that the listing of the ten queues may take.
LISTING_LIMIT = 2.0
#: Jobs in one claim.
BATCH = 10
#: Claims, and listings, before those that count.
WARM_UP = 5

#: Half of the queues are called mail-0 to mail-4, the others report-5 to report-9.
SELECTORS = {
    "all": ("*",),
    "one name": ("mail-3",),
    "three names": ("report-7", "mail-3", "report-5"),
    "a prefix": ("mail-*",),
    "two prefixes": ("report-*", "mail-*"),
}
PAUSED = "mail-0"

#: Of three ranks, each spread over all queues.
FILL_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, {{rank}}, task_path, backend_name, arguments,
                           max_attempts, attempts, token, enqueued_at)
SELECT REPLACE(CASE WHEN ones < 5 THEN 'mail-#' ELSE 'report-#' END, '#', CAST(ones AS CHAR)),
       CASE WHEN tens < 3 THEN -1 WHEN tens < 7 THEN 0 ELSE 1 END, 'jobs.tasks.noop', 'default',
       '{{{{"args":[],"kwargs":{{{{}}}}}}}}', 1, 0, 0, %s
FROM ({{numbers}}) AS numbers WHERE number < {{count}}"""
FILL_READY = f"""
INSERT INTO {tables.READY} (job_id, queue_name, {{rank}}, token, created_at, turn)
SELECT id, queue_name, {{rank}}, 0, enqueued_at, id FROM {tables.JOBS}"""
DISTINCT = f"SELECT DISTINCT queue_name FROM {tables.READY}"


class Queue:
    """A queue database, and a registered worker that is this process."""

    def __init__(self, alias: str, rows: int) -> None:
        self.connection = connections[alias]
        self.dialect = dialect_for(alias)
        # As in the main thread of a worker.
        self.dialect.prepare(self.connection, impatient=True)
        self._fill(rows)
        self.process = testbed.register(alias)

    def seconds_of_claim(self, selector: QueueSelector) -> float:
        """Claim once; then finish the jobs, and put others in their place."""
        began = time.perf_counter()
        claims = self.dialect.claim(self.connection, self.process, selector, BATCH)
        seconds = time.perf_counter() - began
        if len(claims) != BATCH:
            raise AssertionError(f"{len(claims)} jobs claimed from {selector.patterns}")
        self.dialect.settle(self.connection, [finished(claim) for claim in claims])
        self.dialect.enqueue(
            self.connection, [new_job(claim.queue_name, claim.rank) for claim in claims]
        )
        return seconds

    def seconds_of_listing(self) -> float:
        return _seconds(lambda: self.dialect.list_queues(self.connection))

    def seconds_of_distinct(self) -> float:
        return _seconds(lambda: self.query(DISTINCT))

    def query(self, sql: str, values: Sequence[Any] | None = None) -> list[Any]:
        """Run a statement that the dialect knows nothing of."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall()) if cursor.description else []

    def _fill(self, rows: int) -> None:
        rank = self.connection.ops.quote_name("rank")
        instant = portable.storable(self.dialect.current_time(self.connection))
        enqueued_at = self.connection.ops.adapt_datetimefield_value(instant)
        self.query(FILL_JOBS.format(rank=rank, numbers=numbers(rows), count=rows), [enqueued_at])
        self.query(FILL_READY.format(rank=rank))
        # As servers do by themselves a little later.
        command = {"postgresql": "ANALYZE", "mysql": "ANALYZE TABLE"}.get(self.connection.vendor)
        for table in (tables.JOBS, tables.READY) if command else ():
            self.query(f"{command} {table}")


class Line(NamedTuple):
    """One line of the table of claims; in milliseconds."""

    database: str
    queues: str
    small: float
    large: float

    @property
    def ratio(self) -> float:
        return self.large / self.small


def measure_claims(database: str, small: Queue, large: Queue, samples: int) -> list[Line]:
    """Claim in turn from both, for each selector, and once more while a queue is paused."""
    lines = []
    for title, patterns in SELECTORS.items():
        lines.append(_line(database, title, patterns, small, large, samples))
    pause = f"INSERT INTO {tables.PAUSES} (queue_name, created_at) VALUES (%s, %s)"
    for queue in (small, large):
        instant = portable.storable(queue.dialect.current_time(queue.connection))
        queue.query(pause, [PAUSED, queue.connection.ops.adapt_datetimefield_value(instant)])
    lines.append(_line(database, "all, one paused", ("*",), small, large, samples))
    return lines


def _line(
    database: str, title: str, patterns: tuple[str, ...], small: Queue, large: Queue, samples: int
) -> Line:
    selector = QueueSelector(patterns=patterns)
    times: dict[Queue, list[float]] = {small: [], large: []}
    for _ in range(WARM_UP + samples):
        for queue in (small, large):
            times[queue].append(queue.seconds_of_claim(selector))
    return Line(database, title, *(_milliseconds(times[queue]) for queue in (small, large)))


def measure_listing(large: Queue, samples: int) -> tuple[float, float]:
    """Return the time for listing the queues, with the dialect and with a plain DISTINCT."""
    ours = [large.seconds_of_listing() for _ in range(WARM_UP + samples)]
    plain = [large.seconds_of_distinct() for _ in range(WARM_UP + samples // 10)]
    return _milliseconds(ours), _milliseconds(plain)


def numbers(count: int) -> str:
    """Return a query, in the language of every database, for numbers from 0 to ``count`` or more,
    with their last two digits."""
    digit = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(10))
    places = range(max(2, len(str(count - 1))))
    number = " + ".join(f"{10**place} * d{place}.n" for place in places)
    digits = " CROSS JOIN ".join(f"({digit}) d{place}" for place in places)
    return f"SELECT {number} AS number, d0.n AS ones, d1.n AS tens FROM {digits}"


def _milliseconds(seconds: Sequence[float]) -> float:
    return statistics.median(seconds[WARM_UP:]) * 1000


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 0 when every figure keeps to its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--database", metavar="NAME,...", help=", ".join(testbed.DATABASES))
    parser.add_argument("--small", type=int, default=1_000, metavar="N", help="ready rows")
    parser.add_argument("--large", type=int, default=1_000_000, metavar="N", help="ready rows")
    parser.add_argument("--samples", type=int, default=100, metavar="N", help="claims of a kind")
    parsed = parser.parse_args(arguments)
    testbed.set_up()
    claims: list[Line] = []
    listings: list[tuple[str, float, float]] = []
    for kind in testbed.chosen(parsed.database):
        aliases = (f"{kind}_small", f"{kind}_large")
        try:
            with testbed.queues(kind, aliases) as version:
                print(f"{version}: {parsed.large:,} rows", file=sys.stderr, flush=True)
                small, large = map(Queue, aliases, (parsed.small, parsed.large))
                claims += measure_claims(version, small, large, parsed.samples)
                listings.append((version, *measure_listing(large, parsed.samples)))
        except LookupError as missing:
            print(f"{kind}: not measured: {missing}", file=sys.stderr)
    print(_table(parsed, claims, listings))
    slow = any(line.ratio > LIMIT for line in claims)
    return int(slow or any(ours > LISTING_LIMIT for _, ours, _ in listings))


def _table(
    parsed: argparse.Namespace, claims: list[Line], listings: list[tuple[str, float, float]]
) -> str:
    head = ["claim of 10, median ms", "queues", f"{parsed.small:,} rows", f"{parsed.large:,} rows",
            "ratio", f"limit {LIMIT}"]  # fmt: skip
    rows = [
        [line.database, line.queues, f"{line.small:.2f}", f"{line.large:.2f}", f"{line.ratio:.2f}",
         "kept" if line.ratio <= LIMIT else "EXCEEDED"]
        for line in claims
    ]  # fmt: skip
    listing_head = [f"10 queues of {parsed.large:,} rows, median ms", "listed", "plain DISTINCT",
                    f"limit {LISTING_LIMIT:g}"]  # fmt: skip
    listing_rows = [
        [version, f"{ours:.2f}", f"{plain:.2f}", "kept" if ours <= LISTING_LIMIT else "EXCEEDED"]
        for version, ours, plain in listings
    ]
    return f"{aligned([head, *rows])}\n\n{aligned([listing_head, *listing_rows])}"


if __name__ == "__main__":
    sys.exit(main())
