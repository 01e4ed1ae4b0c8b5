"""The rate of a busy queue while an old transaction prevents the server from cleaning up.

    python -m benchmarks.bloat --database postgres,mariadb

Processes enqueue, claim and settle, ten jobs at a time. In between, for one phase, another
connection holds a snapshot from its beginning.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from django.db import DatabaseError, connections

from benchmarks import testbed
from benchmarks.columns import aligned
from benchmarks.jobs import finished, new_job
from steady_queue_core.dialects import Outcome, QueueSelector, dialect_for, tables

#: The share of the normal rate that has to remain.
LIMIT = 0.8
BATCH = 10

#: A transaction that sees the present for as long as it lasts, by ``connection.vendor``.
SNAPSHOTS = {
    "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ", f"SELECT 1 FROM {tables.JOBS} LIMIT 1"),
    "mysql": (
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    ),
    "sqlite": ("BEGIN", f"SELECT count(*) FROM {tables.READY}"),
}


class Phase(NamedTuple):
    """The combined results of all processes in one phase."""

    #: Jobs enqueued, claimed and finished in a second; over the phase, and in its last third.
    rate: float
    last_rate: float
    #: Median milliseconds of settling a batch and claiming the next, in the last third.
    claim: float

    @classmethod
    def of(cls, found: Sequence[list[tuple[float, float]]], seconds: float) -> Phase:
        """Sum up the batches of all processes: when each was claimed, and how long that took."""
        batches = [batch for each in found for batch in each]
        late = [took for at, took in batches if at > seconds * 2 / 3]
        return cls(
            rate=len(batches) * BATCH / seconds,
            last_rate=len(late) * BATCH / (seconds / 3),
            claim=statistics.median(late) * 1000 if late else float("inf"),
        )


def run_phase(alias: str, processes: int, seconds: float) -> Phase:
    """Run the cycle in ``processes`` processes for ``seconds``."""
    # A connection must not be there twice.
    connections[alias].close()
    context: Any = multiprocessing.get_context("fork")
    start = context.Event()
    pipes, children = [], []
    for _ in range(processes):
        ours, theirs = context.Pipe()
        child = context.Process(target=_cycle, args=(alias, seconds, start, theirs), daemon=True)
        child.start()
        pipes.append(ours)
        children.append(child)
    for pipe in pipes:
        pipe.recv()
    start.set()
    found = [pipe.recv() for pipe in pipes]
    for child in children:
        child.join()
    return Phase.of(found, seconds)


def _cycle(alias: str, seconds: float, start: Any, pipe: Connection) -> None:
    connection, dialect = connections[alias], dialect_for(alias)
    dialect.prepare(connection, impatient=True)
    process = testbed.register(alias)
    jobs = [new_job("mail")] * BATCH
    selector = QueueSelector()
    pipe.send("ready")
    start.wait()
    began = time.monotonic()
    batches: list[tuple[float, float]] = []
    outcomes: list[Outcome] = []
    while time.monotonic() - began < seconds:
        try:
            dialect.enqueue(connection, jobs)
            before = time.monotonic()
            _, claims = dialect.settle_and_claim(connection, outcomes, process, selector, BATCH)
        except DatabaseError as error:
            if not dialect.is_contention(connection, error):
                raise
            continue
        after = time.monotonic()
        outcomes = [finished(claim) for claim in claims]
        if claims:
            batches.append((after - began, after - before))
    dialect.settle(connection, outcomes)
    pipe.send(batches)
    connection.close()


@contextmanager
def old_transaction(alias: str) -> Iterator[None]:
    """Hold a snapshot of now, in a process of its own, until the end."""
    connections[alias].close()
    context: Any = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    holder = context.Process(target=_hold, args=(alias, theirs), daemon=True)
    holder.start()
    ours.recv()
    try:
        yield
    finally:
        ours.send("enough")
        holder.join()


def _hold(alias: str, pipe: Connection) -> None:
    connection = connections[alias]
    with connection.cursor() as cursor:
        for statement in SNAPSHOTS[connection.vendor]:
            cursor.execute(statement)
            if cursor.description:
                cursor.fetchall()
        pipe.send("held")
        pipe.recv()
        cursor.execute("ROLLBACK")
    connection.close()


def measure(alias: str, processes: int, seconds: float) -> tuple[Phase, Phase, Phase]:
    """Return the phases before, during and after an old transaction."""
    run_phase(alias, processes, 2.0)  # Files grow, plans are made.
    before = run_phase(alias, processes, seconds / 2)
    with old_transaction(alias):
        during = run_phase(alias, processes, seconds)
    return before, during, run_phase(alias, processes, seconds / 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 when the rate keeps to its limit everywhere."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bloat", description=__doc__)
    parser.add_argument("--database", metavar="NAME,...", help=", ".join(testbed.DATABASES))
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="of the old one")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parsed = parser.parse_args(arguments)
    testbed.set_up()
    found: list[tuple[str, tuple[Phase, Phase, Phase]]] = []
    for kind in testbed.chosen(parsed.database):
        alias = f"{kind}_bloat"
        try:
            with testbed.queues(kind, [alias]) as version:
                print(version, file=sys.stderr, flush=True)
                found.append((version, measure(alias, parsed.processes, parsed.seconds)))
        except LookupError as missing:
            print(f"{kind}: not measured: {missing}", file=sys.stderr)
    print(_table(parsed.seconds, found))
    return int(any(_remains(phases) < LIMIT for _, phases in found))


def _remains(phases: tuple[Phase, Phase, Phase]) -> float:
    """Return the share of the normal rate, which is the mean of before and after."""
    before, during, after = phases
    return during.rate / ((before.rate + after.rate) / 2)


def _table(seconds: float, found: Sequence[tuple[str, tuple[Phase, Phase, Phase]]]) -> str:
    head = [f"cycles, jobs/s; {seconds:g} s with an old transaction", "before", "with it",
            f"its last {seconds / 3:g} s", "after", "remains", "claim ms before", "with it",
            "after", f"limit {LIMIT:.0%}"]  # fmt: skip
    rows = []
    for version, phases in found:
        before, during, after = phases
        remains = _remains(phases)
        rows.append(
            [version, f"{before.rate:,.0f}", f"{during.rate:,.0f}", f"{during.last_rate:,.0f}",
             f"{after.rate:,.0f}", f"{remains:.0%}", f"{before.claim:.2f}", f"{during.claim:.2f}",
             f"{after.claim:.2f}", "kept" if remains >= LIMIT else "MISSED"]
        )  # fmt: skip
    return aligned([head, *rows])


if __name__ == "__main__":
    sys.exit(main())
