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
COUNTED = range(1, MOST + 1, LEAST)
"""Rounds in which statements, commits and round trips are counted."""
TURNS = 40
"""Of both in one round, where they enqueue: 20 jobs one by one, then 500 in bulk."""
AHEAD = 4
"""The floor gets this many times as many jobs: it is faster, and short drains say little."""


def take_counts(options: Options, enough: Callable[[Figures], bool]) -> Figures:
    """Count on one database until that is enough, or as often as `take` at most."""
    with ExitStack() as stack:
        server = stack.enter_context(open_server(options, sqlite3.sqlite_version))
        counts = Counts(_prepared(stack, "steady_queue", options, server))
        for number, _ in enumerate(COUNTED, 1):
            say(f"{options.database}: count {number}")
            counts.measure()
            if enough(counts.figures):
                break
        return counts.figures


def take(options: Options, enough: Callable[[Figures], bool]) -> Figures:
    """Measure on one database until that is enough, or until more would not help."""
    with open_server(options, sqlite3.sqlite_version) as server, Costs(options, server) as costs:
        for number in range(1, MOST + 1):
            say(f"{options.database}: round {number}")
            costs.measure(counting=number in COUNTED)
            if number >= LEAST and enough(costs.figures()):
                break
        return costs.figures()


class Counts:
    """What a job costs in statements, commits and round trips.

    Of several counts the smallest is taken: workers that are disturbed make more, smaller batches.
    """

    def __init__(self, project: Sandbox) -> None:
        self._project = project
        self.figures: Figures = {}
        """The figures so far, by the keys of `comparison`."""

    def measure(self) -> None:
        """Count once more."""
        for name, value in count(self._project).items():
            self.figures[name] = min(value, self.figures.get(name, value))


class Costs:
    """What a job costs this project; its CPU time as a multiple of the floor's.

    Both are measured in turns of a fraction of a second. Of the ratios of all rounds the median is
    taken.
    """

    def __init__(self, options: Options, server: DatabaseServer) -> None:
        self._stack = ExitStack()
        self._project = _prepared(self._stack, "steady_queue", options, server)
        ahead = replace(options, jobs=AHEAD * options.jobs)
        self._floor = _prepared(self._stack, "floor", ahead, server)
        self._ratios: dict[str, list[float]] = {}
        self._counts = Counts(self._project)

    def __enter__(self) -> Costs:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, *, counting: bool) -> None:
        """Take the CPU time of both once more; on request, count statements as well."""
        for name, ratio in (self._enqueued() | self._drained()).items():
            self._ratios.setdefault(name, []).append(ratio)
        if counting:
            self._counts.measure()

    def figures(self) -> Figures:
        """Return the figures so far, by the keys of `comparison`."""
        ratios = {name: statistics.median(found) for name, found in self._ratios.items()}
        return self._counts.figures | ratios

    def _enqueued(self) -> Figures:
        self._project.reset()
        ratios = self._project.client("compare", "floor", TURNS)
        return {f"{name}_cpu": ratio for name, ratio in ratios.items()}

    def _drained(self) -> Figures:
        project, floor = turns.cpu_us([self._project, self._floor])
        return {"drain_cpu": project / floor}


def _prepared(stack: ExitStack, name: str, options: Options, server: DatabaseServer) -> Sandbox:
    """Make a competitor's sandbox, whose database the stack removes."""
    sandbox = Sandbox(competitors()[name], options, server)
    stack.callback(sandbox.database.remove)
    return sandbox
