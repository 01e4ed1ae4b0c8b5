"""One contender on this machine, and how each measure of it is taken."""

from __future__ import annotations

import time

from benchmarks import statements
from benchmarks.databases import Counts
from benchmarks.processes import Tree
from benchmarks.stage import Figures, Stage


class Contender:
    """Takes the measures of one contender."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.adapter = stage.adapter
        self.options = stage.options

    def measure(self, *, counting: bool) -> Figures:
        """Take every measure once; count statements only where asked, for they do not vary."""
        figures = self._enqueue() | self._idle() | self._drain("noop", "drain")
        if self.adapter.capabilities.coroutine:
            figures |= self._drain("anoop", "drain_coroutine")
        return figures | statements.count(self.stage) if counting else figures

    def _enqueue(self) -> Figures:
        options = self.options
        self.stage.reset()
        one = self.stage.client("enqueue", options.enqueued, options.limit)
        figures = {"enqueue": one["rate"]}
        if self.adapter.capabilities.bulk:
            self.stage.reset()
            many = self.stage.client("bulk", options.enqueued * 10, options.limit)
            if "rate" in many:
                figures["bulk"] = many["rate"]
        return figures

    def _idle(self) -> Figures:
        """Latency, CPU time, queries and memory of workers that have next to nothing to do."""
        self.stage.reset()
        with self.stage.workers() as tree:
            latency = self.stage.client("latency", self.options.samples, tree=tree)
            time.sleep(0.5)
            figures = {
                "latency_p50": latency["p50"],
                "latency_p95": latency["p95"],
                "latency_max": latency["max"],
                "latency_call_p50": latency["call_p50"],
                **self._rest(tree),
                "memory_idle": tree.memory() / 2**20,
                "processes": len(tree.pids()),
            }
            self.stage.check(tree)
            return figures

    def _rest(self, tree: Tree) -> Figures:
        """Do nothing for a while; return what it costs."""
        counts = self.stage.database.counts()
        before, begin = tree.cpu_seconds(), time.monotonic()
        time.sleep(self.options.idle)
        used = tree.cpu_seconds() - before
        seconds = time.monotonic() - begin
        figures = {"idle_cpu": 100 * used / seconds}
        asked = _statements_since(counts, self.stage.database.counts())
        return figures if asked is None else figures | {"idle_queries": asked / seconds}

    def _drain(self, task: str, name: str) -> Figures:
        jobs = self.stage.fill(task)
        watched, started_ns, memory = self.stage.run(jobs)
        return {
            name: watched["rate"],
            f"{name}_wall": watched["ran"] / ((watched["end_ns"] - started_ns) / 1e9),
            f"{name}_jobs": jobs,
            f"{name}_ran": watched["ran"],
            f"{name}_left": watched["left"],
            f"{name}_cpu_us": watched["cpu_us"],
            f"{name}_processes": watched["processes"],
            "memory": memory,
        }


def _statements_since(before: Counts | None, after: Counts | None) -> int | None:
    if before is None or after is None or before.statements is None or after.statements is None:
        return None
    return after.statements - before.statements
