"""The cost of batches and graphs of jobs.

    python -m benchmarks.batches --database postgres,mysql

Storing and settling are measured at the dialects, without workers; the last table is of workers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import testbed
from benchmarks.batch_costs import (
    Ends,
    Stored,
    measure_ends,
    settle_cost,
    store_batch,
    store_graph,
    store_plain,
)
from benchmarks.batch_workers import Together, measure_together
from benchmarks.columns import aligned

EARLY = 100
#: What ending a late member may cost, as a multiple of an early one.
LIMIT = 1.2
#: The share of the rate of unrelated jobs that remains where members of one batch end at once.
TOGETHER = 0.8


class Costs(NamedTuple):
    """The figures of one database."""

    plain: Stored
    batch: Stored
    at_once: Stored
    graph: Stored
    #: Seconds of settling one job, by its kind.
    settled: dict[str, float]
    ends: Ends
    together: Together


def measure(alias: str, parsed: argparse.Namespace) -> Costs:
    """Take all figures of one database, whose queue is empty."""
    stored = (
        store_plain(alias, parsed.jobs),
        store_batch(alias, parsed.jobs),
        store_batch(alias, parsed.jobs, at_once=True),
        store_graph(alias, parsed.nodes),
    )
    kinds = {"plain": parsed.jobs, "members": parsed.jobs, "graph": parsed.nodes}
    settled = {kind: settle_cost(alias, kind, count) for kind, count in kinds.items()}
    ends = measure_ends(alias, EARLY, parsed.late, parsed.samples)
    together = measure_together(alias, parsed.processes, parsed.drained, parsed.turns)
    return Costs(*stored, settled, ends, together)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 0 when every figure keeps to its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    parser.add_argument("--database", metavar="NAME,...", help=", ".join(testbed.DATABASES))
    parser.add_argument("--jobs", type=int, default=100_000, metavar="N", help="of a batch")
    parser.add_argument("--nodes", type=int, default=10_000, metavar="N", help="of a graph")
    parser.add_argument("--late", type=int, default=10_000, metavar="N", help="the late member")
    parser.add_argument("--samples", type=int, default=300, metavar="N", help="ends of members")
    parser.add_argument("--processes", type=int, default=8, metavar="N")
    parser.add_argument("--drained", type=int, default=12_000, metavar="N", help="jobs of a turn")
    parser.add_argument("--turns", type=int, default=9, metavar="N")
    parsed = parser.parse_args(arguments)
    testbed.set_up()
    found: list[tuple[str, Costs]] = []
    for kind in testbed.chosen(parsed.database):
        alias = f"{kind}_batches"
        try:
            with testbed.queues(kind, [alias]) as version:
                print(version, file=sys.stderr, flush=True)
                found.append((version, measure(alias, parsed)))
        except LookupError as missing:
            print(f"{kind}: not measured: {missing}", file=sys.stderr)
    print("\n\n".join(_tables(parsed, found)))
    return int(not all(_keeps(costs) for _, costs in found))


def _keeps(costs: Costs) -> bool:
    together = costs.together
    return costs.ends.ratio <= LIMIT and together.ratio >= TOGETHER and not together.deadlocks


def _tables(parsed: argparse.Namespace, found: Sequence[tuple[str, Costs]]) -> list[str]:
    return [
        aligned([
            [f"storing {parsed.jobs:,} jobs, {parsed.nodes:,} nodes: s; CPU, us each; MiB",
             "unrelated", "a batch", "in one call", "a graph"],
            *([version, *(_stored(each, parsed) for each in
                          (("jobs", costs.plain), ("jobs", costs.batch), ("jobs", costs.at_once),
                           ("nodes", costs.graph)))]
              for version, costs in found),
        ]),
        aligned([
            ["settling, us a job", "unrelated", "of a batch", "of a graph",
             f"alone, no. {EARLY}", f"no. {parsed.late:,}", "ratio", f"limit {LIMIT}"],
            *([version, *(f"{seconds * 1e6:.0f}" for seconds in costs.settled.values()),
               f"{costs.ends.early * 1e6:.0f}", f"{costs.ends.late * 1e6:.0f}",
               f"{costs.ends.ratio:.2f}", "kept" if costs.ends.ratio <= LIMIT else "EXCEEDED"]
              for version, costs in found),
        ]),
        aligned([
            [f"{parsed.processes} workers, jobs/s", "unrelated", "of one batch", "remains",
             "deadlocks", f"limit {TOGETHER:.0%}"],
            *([version, f"{costs.together.plain:,.0f}", f"{costs.together.members:,.0f}",
               f"{costs.together.ratio:.0%}", f"{costs.together.deadlocks}",
               "kept" if costs.together.ratio >= TOGETHER else "MISSED"]
              for version, costs in found),
        ]),
    ]  # fmt: skip


def _stored(given: tuple[str, Stored], parsed: argparse.Namespace) -> str:
    name, stored = given
    each = stored.cpu / getattr(parsed, name) * 1e6
    return f"{stored.seconds:.1f}; {each:.0f}; {stored.memory / 2**20:.0f}"


if __name__ == "__main__":
    sys.exit(main())
