"""How long tests take here, by what has been seen: for their order, and for whoever waits.

``durations.json`` has what a quiet machine took, by scope (what stays in one worker): the number of
its tests and their seconds. What this machine takes is kept in the cache of pytest and goes before
it. ``--write-durations`` writes the file anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from .scopes import scope_of

FILE = Path(__file__).with_name("durations.json")
CACHE = "steady-queue/durations"
#: Seconds of a test that nobody has seen yet.
UNKNOWN = 0.1
#: Scopes that take longer begin the longest first, after all others.
LONG = 4.0

#: By scope, the number of its tests and their seconds.
Seen = dict[str, tuple[int, float]]


class Durations:
    """A plugin of pytest: puts the short tests first, and remembers how long each scope took."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        #: None where pytest is told to have no cache.
        self.cache: pytest.Cache | None = getattr(config, "cache", None)
        here = self.cache.get(CACHE, {}) if self.cache is not None else {}
        self.seen: Seen = {**json.loads(FILE.read_text()), **here}
        self._counts: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        expected = self.expected(item.nodeid for item in items)
        items.sort(key=lambda item: _place(expected[scope_of(item.nodeid)]))

    def expected(self, nodeids: Iterable[str]) -> dict[str, float]:
        """Return the seconds that the tests of each scope are going to take."""
        counts = Counter(map(scope_of, nodeids))
        return {scope: count * self._each(scope) for scope, count in counts.items()}

    def report(self, nodeids: list[str], workers: int) -> str:
        """Return what is going to be run, and how long that takes."""
        seconds = self.expected(nodeids)
        longest = max([*seconds.values(), 0])
        whole = max(sum(seconds.values()) / workers, longest)
        return (
            f"{len(nodeids):,} tests in {len(seconds):,} groups, the short ones first: "
            f"about {_readable(whole)} here with {workers} at once"
        )

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> str:
        return self.report([item.nodeid for item in items], 1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Tell it once: all workers have the same tests."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and getattr(node, "gateway").id == "gw0":  # noqa: B009 (untyped)
            reporter.write_line("")
            reporter.write_line(self.report(ids, self.config.getoption("numprocesses") or 1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        scope = scope_of(report.nodeid)
        self._counts[scope] += report.when == "call" and not report.skipped
        self._seconds[scope] += report.duration

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workerinput"):
            return
        found = {
            scope: (count, round(self._seconds[scope], 3))
            for scope, count in self._counts.items() if count
        }  # fmt: skip
        if self.config.getoption("--write-durations"):
            self._write({**self.seen, **found})
        elif self.cache is not None:
            self.cache.set(CACHE, {**self.cache.get(CACHE, {}), **found})

    def _each(self, scope: str) -> float:
        count, seconds = self.seen.get(scope, (1, UNKNOWN))
        return seconds / count

    def _write(self, found: Seen) -> None:
        lines = (f'"{scope}": {json.dumps(list(found[scope]))}' for scope in sorted(found))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _place(seconds: float) -> tuple[bool, float]:
    return (False, seconds) if seconds < LONG else (True, -seconds)


def _readable(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
