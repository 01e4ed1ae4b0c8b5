"""The cost of fair queues, and what they give each key, with very many ready jobs.

    python -m benchmarks.fair --database postgres,mysql

A small and a large queue database on one server take turns claim by claim, as in ``large``. In
both, jobs are shared among keys; those that end are replaced by others of the same keys. A third
one holds as many jobs of three keys, with weights, beside which a newcomer appears.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.db import connections

from benchmarks import testbed
from benchmarks.columns import aligned
from benchmarks.jobs import finished, new_job
from benchmarks.large import BATCH, LIMIT, WARM_UP, numbers
from steady_queue_core.dialects import (
    ClaimedJob,
    NewJob,
    QueueSelector,
    dialect_for,
    tables,
)
from steady_queue_core.features.fair import of_database as fair_queues
from steady_queue_core.features.fair.queues import FairQueues

#: Jobs of one bulk enqueue, and among how many keys.
BULK, BULK_KEYS = 10_000, 100
#: By how many jobs a key may miss its share of so many jobs in a row.
TOLERANCE, WINDOW = 2, 200
WEIGHTS = {"one": 1, "two": 2, "five": 5}
ROUND = sum(WEIGHTS.values())

FILL_JOBS = f"""
INSERT INTO {tables.JOBS} (queue_name, {{rank}}, task_path, backend_name, arguments, metadata,
                           max_attempts, attempts, token, enqueued_at)
SELECT 'fair', 0, 'jobs.tasks.noop', 'default', '{{{{"args":[],"kwargs":{{{{}}}}}}}}', {{metadata}},
       1, 0, 0, CURRENT_TIMESTAMP
FROM ({{numbers}}) AS numbers WHERE number < {{count}} ORDER BY number"""
FILL_READY = f"""
INSERT INTO {tables.READY} (job_id, queue_name, {{rank}}, token, created_at, turn)
SELECT id, queue_name, {{rank}}, 0, enqueued_at, {{turn}} FROM {tables.JOBS}"""
OF_KEYS = """REPLACE('{{"fair": "#"}}', '#', CAST(number % {keys} AS CHAR(9)))"""
TURN_OF_KEYS = "(id - 1 - (id - 1) % {keys}) / {keys}"
#: Of eight jobs in a row, one, two and five.
OF_WEIGHTS = """
CASE WHEN number % 8 = 0 THEN '{"fair": "one"}'
     WHEN number % 8 < 3 THEN '{"fair": "two"}' ELSE '{"fair": "five"}' END"""
TURN_OF_WEIGHTS = """
(id - 1 - (id - 1) % 8) / 8 + CASE WHEN (id - 1) % 8 = 0 THEN 0
  WHEN (id - 1) % 8 < 3 THEN ((id - 1) % 8 - 1) / 2.0 ELSE ((id - 1) % 8 - 3) / 5.0 END"""


class Queue:
    """A database with one fair queue, and a registered worker that is this process."""

    def __init__(self, alias: str) -> None:
        self.connection, self.dialect = connections[alias], dialect_for(alias)
        self.process = testbed.register(alias)

    def begin(self) -> None:
        """Begin the session of a worker, which a server ends if it is silent for long."""
        self.connection.close()
        self.dialect.prepare(self.connection, impatient=True)

    def fill(self, count: int, metadata: str, turn: str, following: Mapping[str, float]) -> None:
        """Insert ready jobs, and the rows of their keys."""
        from steady_queue_core.models import Turn

        rank = self.connection.ops.quote_name("rank")
        jobs = FILL_JOBS.format(
            rank=rank, numbers=numbers(count), count=count, metadata=metadata,
        )  # fmt: skip
        self._query(jobs)
        self._query(FILL_READY.format(rank=rank, turn=turn))
        rows = [
            Turn(queue_name="fair", rank=0, key=key, turn=next_one)
            for key, next_one in following.items()
        ]
        Turn.objects.using(self.connection.alias).bulk_create(rows, batch_size=500)
        command = {"postgresql": "ANALYZE", "mysql": "ANALYZE TABLE"}.get(self.connection.vendor)
        for table in (tables.JOBS, tables.READY, tables.TURNS) if command else ():
            self._query(f"{command} {table}")

    def weigh(self, weights: Mapping[str, float]) -> None:
        from steady_queue_core.models import Share

        rows = [Share(queue_name="fair", key=key, weight=weight) for key, weight in weights.items()]
        Share.objects.using(self.connection.alias).bulk_create(rows)

    def claim(self, limit: int = BATCH) -> list[ClaimedJob]:
        return self.dialect.claim(self.connection, self.process, QueueSelector(), limit)

    def finish(self, claims: Sequence[ClaimedJob]) -> list[str]:
        """Finish jobs; return their keys."""
        self.dialect.settle(self.connection, [finished(claim) for claim in claims])
        return [json.loads(claim.metadata or "")["fair"] for claim in claims]

    def enqueue(self, jobs: Sequence[NewJob]) -> float:
        """Return the seconds that it takes to enqueue ``jobs``."""
        began = time.perf_counter()
        self.dialect.enqueue(self.connection, jobs)
        return time.perf_counter() - began

    def seconds_of_claim(self) -> float:
        """Claim once; then finish the jobs, and put others of their keys in their place."""
        began = time.perf_counter()
        claims = self.claim()
        seconds = time.perf_counter() - began
        self.enqueue([of_key(key) for key in self.finish(claims)])
        return seconds

    def _query(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)


def of_key(key: str) -> NewJob:
    return replace(new_job("fair"), fair_key=key, metadata=json.dumps({"fair": key}))


def plain(key: str) -> NewJob:
    """Return the same job without a key, for a queue of its own."""
    return replace(of_key(key), fair_key=None, queue_name="plain")


class Costs(NamedTuple):
    """In milliseconds."""

    small: float
    large: float
    plain: float
    fair: float
    plain_bulk: float
    fair_bulk: float

    @property
    def ratio(self) -> float:
        return self.large / self.small


class Shares(NamedTuple):
    #: By how many jobs a key has missed its share of a window, at most.
    before: float
    #: After how many others the first job of the newcomer came, and the shares from then on.
    newcomer: int
    after: float

    @property
    def keeps(self) -> bool:
        return max(self.before, self.after) <= TOLERANCE and self.newcomer <= ROUND + 1


def measure_costs(small: Queue, large: Queue, parsed: argparse.Namespace) -> Costs:
    for queue, jobs, keys in (
        (small, parsed.small, parsed.small_keys),
        (large, parsed.large, parsed.large_keys),
    ):
        following = {str(key): jobs / keys for key in range(keys)}
        queue.fill(jobs, OF_KEYS.format(keys=keys), TURN_OF_KEYS.format(keys=keys), following)
    claims: dict[Queue, list[float]] = {small: [], large: []}
    for queue in claims:
        queue.begin()
    for _ in range(WARM_UP + parsed.samples):
        for queue in claims:
            claims[queue].append(queue.seconds_of_claim())
    one: dict[Any, list[float]] = {plain: [], of_key: []}
    for number in range(WARM_UP + parsed.samples):
        for make in one:
            one[make].append(large.enqueue([make(str(number))]))
    bulk: dict[Any, list[float]] = {plain: [], of_key: []}
    for _ in range(parsed.bulks):
        for make in bulk:
            jobs_of_bulk = [make(str(number % BULK_KEYS)) for number in range(BULK)]
            bulk[make].append(large.enqueue(jobs_of_bulk))
    return Costs(
        *(statistics.median(times[WARM_UP:]) * 1000 for times in claims.values()),
        *(statistics.median(times[WARM_UP:]) * 1000 for times in one.values()),
        *(statistics.median(times) * 1000 for times in bulk.values()),
    )


def measure_shares(queue: Queue, jobs: int) -> Shares:
    following = dict.fromkeys(WEIGHTS, jobs / ROUND)
    queue.fill(jobs, OF_WEIGHTS, TURN_OF_WEIGHTS, following)
    queue.weigh(WEIGHTS)
    queue.begin()
    served: list[str] = []
    while len(served) < 4 * WINDOW:
        served += queue.finish(queue.claim())
    queue.enqueue([of_key("newcomer")] * 2 * WINDOW)
    others: list[str] = []
    while len(others) < 4 * WINDOW:
        others += queue.finish(queue.claim())
    return Shares(
        _deviation(served, WEIGHTS),
        others.index("newcomer"),
        _deviation(others, {**WEIGHTS, "newcomer": 1}),
    )


def _deviation(served: Sequence[str], weights: Mapping[str, float]) -> float:
    whole, most = sum(weights.values()), 0.0
    for start in range(len(served) - WINDOW + 1):
        counted = Counter(served[start : start + WINDOW])
        for key, weight in weights.items():
            most = max(most, abs(counted[key] - WINDOW * weight / whole))
    return most


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 0 when every figure keeps to its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fair", description=__doc__)
    parser.add_argument("--database", metavar="NAME,...", help=", ".join(testbed.DATABASES))
    parser.add_argument("--small", type=int, default=1_000, metavar="N", help="ready jobs")
    parser.add_argument("--small-keys", type=int, default=10, metavar="N")
    parser.add_argument("--large", type=int, default=1_000_000, metavar="N", help="ready jobs")
    parser.add_argument("--large-keys", type=int, default=10_000, metavar="N")
    parser.add_argument("--samples", type=int, default=100, metavar="N", help="claims, and calls")
    parser.add_argument("--bulks", type=int, default=5, metavar="N")
    parsed = parser.parse_args(arguments)
    testbed.set_up()
    fair_queues.ask(lambda alias: FairQueues({"fair": 1.0}))
    found: list[tuple[str, Costs, Shares]] = []
    for kind in testbed.chosen(parsed.database):
        aliases = (f"{kind}_small", f"{kind}_large", f"{kind}_shared")
        try:
            with testbed.queues(kind, aliases) as version:
                print(f"{version}: {parsed.large:,} jobs", file=sys.stderr, flush=True)
                small, large, shared = map(Queue, aliases)
                costs = measure_costs(small, large, parsed)
                found.append((version, costs, measure_shares(shared, parsed.large)))
        except LookupError as missing:
            print(f"{kind}: not measured: {missing}", file=sys.stderr)
    print("\n\n".join(_tables(parsed, found)))
    return int(not all(costs.ratio <= LIMIT and shares.keeps for _, costs, shares in found))


def _tables(parsed: argparse.Namespace, found: Sequence[tuple[str, Costs, Shares]]) -> list[str]:
    return [
        aligned([
            [f"median ms; claim of {BATCH}", f"{parsed.small:,} jobs, {parsed.small_keys:,} keys",
             f"{parsed.large:,}, {parsed.large_keys:,}", "ratio", f"limit {LIMIT}"],
            *([version, f"{costs.small:.2f}", f"{costs.large:.2f}", f"{costs.ratio:.2f}",
               "kept" if costs.ratio <= LIMIT else "EXCEEDED"] for version, costs, _ in found),
        ]),
        aligned([
            ["median ms; to enqueue", "one, plain", "with a key", f"{BULK:,}, plain",
             f"with {BULK_KEYS} keys"],
            *([version, f"{costs.plain:.2f}", f"{costs.fair:.2f}", f"{costs.plain_bulk:,.0f}",
               f"{costs.fair_bulk:,.0f}"] for version, costs, _ in found),
        ]),
        aligned([
            [f"shares of {WINDOW} jobs missed by", "weights 1, 2, 5", "a newcomer comes after",
             "and with it", f"limit {TOLERANCE}"],
            *([version, f"{shares.before:.1f}", f"{shares.newcomer}", f"{shares.after:.1f}",
               "kept" if shares.keeps else "EXCEEDED"] for version, _, shares in found),
        ]),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
