"""The cost of the safe mode on Galera: one statement a packet beside several.

    python -m benchmarks.galera

Three nodes behind the proxy of ``examples/clusters``; see ``make clusters`` for what they need.
Both modes enqueue one job at a time and drain these by tens, in turns, on one connection.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from django.db import connections

from benchmarks import testbed
from benchmarks.columns import aligned
from tests.clusters.galera import Galera
from tests.clusters.namespaces import NotPermitted
from tests.servers.programs import NotFound

ALIAS = "galera"
BATCH = 10


class Turn(NamedTuple):
    """Jobs a second."""

    enqueued: float
    drained: float


def turn(jobs: int, *, is_safe: bool) -> Turn:
    """Enqueue and drain so many jobs, by one statement a packet or by several."""
    connection: Any = connections[ALIAS]
    _choose(connection, is_safe)
    return Turn(jobs / _seconds(lambda: _enqueue(jobs)), jobs / _seconds(lambda: _drain(jobs)))


def _choose(connection: Any, is_safe: bool) -> None:
    from steady_queue_mysql.server import server_of

    known = replace(server_of(connection), is_galera=is_safe)
    connection.steady_queue_server = (connection.connection, known)


def _enqueue(jobs: int) -> None:
    from steady_queue_core.conformance.base import new_job
    from steady_queue_core.dialects.database import Database

    database = Database.of(ALIAS)
    for _ in range(jobs):
        database.dialect.enqueue(database.connection, [new_job()])


def _drain(jobs: int) -> None:
    from steady_queue_core.conformance.base import ending
    from steady_queue_core.dialects import Ending, QueueSelector
    from steady_queue_core.dialects.database import Database

    database, worker = Database.of(ALIAS), testbed.register(ALIAS)
    outcomes: list[Any] = []
    done = 0
    while done < jobs:
        _, claims = database.dialect.settle_and_claim(
            database.connection, outcomes, worker, QueueSelector(), BATCH
        )
        outcomes = [ending(Ending.FINISHED, claim) for claim in claims]
        done += len(claims)
    database.dialect.settle(database.connection, outcomes)


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(jobs: int, turns: int) -> dict[bool, list[Turn]]:
    """Return the turns of both modes, without the first of each; which one begins alternates."""
    found: dict[bool, list[Turn]] = {True: [], False: []}
    for number in range(1 + turns):
        for is_safe in (True, False) if number % 2 else (False, True):
            found[is_safe].append(turn(jobs, is_safe=is_safe))
    return {is_safe: each[1:] for is_safe, each in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.galera", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000, metavar="N", help="of a turn")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="of each mode")
    parsed = parser.parse_args(arguments)
    testbed.set_up()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        try:
            cluster = Galera(folder / ALIAS)
            stack.callback(cluster.stop)
            cluster.start()
        except (NotFound, NotPermitted) as error:
            print(f"not measured: {error}", file=sys.stderr)
            return 1
        cluster.wait_complete(120)
        stack.enter_context(testbed.queue_at(ALIAS, cluster.database()))
        print(_table(measure(parsed.jobs, parsed.turns)))
    return 0


def _table(found: dict[bool, list[Turn]]) -> str:
    rows = [["jobs a second", "several", "one", "ratio"]]
    for name in Turn._fields:
        plain, safe = ([getattr(each, name) for each in found[mode]] for mode in (False, True))
        ratio = median(ours / theirs for ours, theirs in zip(safe, plain, strict=True))
        rows.append([name, f"{median(plain):.0f}", f"{median(safe):.0f}", f"{ratio:.2f}"])
    return aligned(rows)


if __name__ == "__main__":
    sys.exit(main())
