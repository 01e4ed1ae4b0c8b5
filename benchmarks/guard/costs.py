"""Taking the costs of a job on one database, better with each round."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.adapters import competitors
from benchmarks.databases import DatabaseServer
from benchmarks.databases.servers import open_server
from benchmarks.guard import turns
from benchmarks.options import Options
from benchmarks.run import say
from benchmarks.sandbox import Figures, Sandbox
from benchmarks.statements import count

LEAST, MOST = 5, 11
"""Rounds after which figures may pass, and after which they have to."""
TURNS = 40
"""Of both in one round, where they enqueue: 20 jobs one by one, then 500 in bulk."""
AHEAD = 4
"""The floor gets this many times as many jobs: it is faster, and short drains say little."""


def take(options: Options, enough: Callable[[Figures], bool]) -> Figures:
    """Measure on one database until that is enough, or until more would not help."""
    with open_server(options, sqlite3.sqlite_version) as server, Costs(options, server) as costs:
        for number in range(1, MOST + 1):
            say(f"{options.database}: round {number}")
            costs.measure(counting=number % LEAST == 1)
            if number >= LEAST and enough(costs.figures()):
                break
        return costs.figures()


class Costs:
    """What a job costs this project; its CPU time as a multiple of the floor's.

    Both are measured in turns of a fraction of a second. Of the ratios of all rounds the median is
    taken, and of the counts the smallest: workers that are disturbed make more, smaller batches.
    """

    def __init__(self, options: Options, server: DatabaseServer) -> None:
        self._stack = ExitStack()
        self._project = self._prepare("steady_queue", options, server)
        self._floor = self._prepare("floor", replace(options, jobs=AHEAD * options.jobs), server)
        self._ratios: dict[str, list[float]] = {}
        self._counts: Figures = {}

    def __enter__(self) -> Costs:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, *, counting: bool) -> None:
        """Take the CPU time of both once more; on request, count statements as well."""
        for name, ratio in (self._enqueued() | self._drained()).items():
            self._ratios.setdefault(name, []).append(ratio)
        if counting:
            for name, value in count(self._project).items():
                self._counts[name] = min(value, self._counts.get(name, value))

    def figures(self) -> Figures:
        """Return the figures so far, by the keys of `comparison`."""
        ratios = {name: statistics.median(found) for name, found in self._ratios.items()}
        return self._counts | ratios

    def _enqueued(self) -> Figures:
        self._project.reset()
        ratios = self._project.client("compare", "floor", TURNS)
        return {f"{name}_cpu": ratio for name, ratio in ratios.items()}

    def _drained(self) -> Figures:
        project, floor = turns.cpu_us([self._project, self._floor])
        return {"drain_cpu": project / floor}

    def _prepare(self, name: str, options: Options, server: DatabaseServer) -> Sandbox:
        sandbox = Sandbox(competitors()[name], options, server)
        self._stack.callback(sandbox.database.remove)
        return sandbox
