"""Taking each measure of one competitor."""

from __future__ import annotations

import time

from benchmarks import statements
from benchmarks.databases import Counts
from benchmarks.drains import DRAINS, Drain
from benchmarks.processes import Tree
from benchmarks.sandbox import Figures, Sandbox


class Competitor:
    """Takes the measures of one competitor."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.adapter = sandbox.adapter
        self.options = sandbox.options

    def measure(self, *, counting: bool) -> Figures:
        """Take every measure once. Statements, which do not vary, are counted only on request."""
        figures = self.enqueue() | self._idle()
        for drain in DRAINS:
            if drain.fits(self.adapter.capabilities):
                figures |= self.drain(drain)
        return figures | statements.count(self.sandbox) if counting else figures

    def enqueue(self) -> Figures:
        """Measure a process that enqueues, and no workers."""
        options = self.options
        self.sandbox.reset()
        one = self.sandbox.client("enqueue", options.enqueued, options.limit)
        figures = {
            "enqueue": one["rate"],
            **{f"enqueue_{name}": one[name] for name in ("cpu_us", "p50", "p95", "p99")},
        }
        if self.adapter.capabilities.bulk:
            self.sandbox.reset()
            many = self.sandbox.client("bulk", options.enqueued * 10, options.limit)
            if "rate" in many:
                figures |= {"bulk": many["rate"], "bulk_cpu_us": many["cpu_us"]}
        return figures

    def _idle(self) -> Figures:
        """Measure latency, CPU time, queries and memory of idle workers."""
        self.sandbox.reset()
        with self.sandbox.workers() as tree:
            latency = self.sandbox.client("latency", self.options.samples, tree=tree)
            time.sleep(0.5)
            figures = {
                **{f"latency_{name}": value for name, value in latency.items()},
                **self._rest(tree),
                "memory_idle": tree.memory() / 2**20,
                "processes": len(tree.pids()),
            }
            self.sandbox.check(tree)
            return figures

    def _rest(self, tree: Tree) -> Figures:
        """Return the cost of doing nothing for a while."""
        counts = self.sandbox.database.counts()
        before, begin = tree.cpu_seconds(), time.monotonic()
        time.sleep(self.options.idle)
        used = tree.cpu_seconds() - before
        seconds = time.monotonic() - begin
        figures = {"idle_cpu": 100 * used / seconds}
        asked = _statements_since(counts, self.sandbox.database.counts())
        return figures if asked is None else figures | {"idle_queries": asked / seconds}

    def drain(self, drain: Drain) -> Figures:
        """Measure workers that empty a queue."""
        jobs, name = self.sandbox.fill(drain.task, drain.share), drain.key
        before = self.sandbox.database.counts()
        watched, started_ns, memory = self.sandbox.run(jobs, drain.environment)
        busy = _server_us(before, self.sandbox.database.counts())
        served = {} if busy is None else {f"{name}_server_us": busy / watched["ran"]}
        return {
            **served,
            name: watched["rate"],
            f"{name}_wall": watched["ran"] / ((watched["end_ns"] - started_ns) / 1e9),
            f"{name}_jobs": jobs,
            f"{name}_ran": watched["ran"],
            f"{name}_left": watched["left"],
            f"{name}_cpu_us": watched["cpu_us"],
            f"{name}_processes": watched["processes"],
            **({"memory": memory} if drain is DRAINS[0] else {}),
        }


def _statements_since(before: Counts | None, after: Counts | None) -> int | None:
    if before is None or after is None or before.statements is None or after.statements is None:
        return None
    return after.statements - before.statements


def _server_us(before: Counts | None, after: Counts | None) -> float | None:
    if before is None or after is None or before.server_us is None or after.server_us is None:
        return None
    return after.server_us - before.server_us
