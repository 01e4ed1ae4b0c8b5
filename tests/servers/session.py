"""The servers of one session of pytest: started when the tests that were chosen need them.

With pytest-xdist each worker starts its own, so that no test meets the sessions or the settings of
another worker's, and the controlling process reports what one of them has found.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import connections

from .address import mysql_driver
from .fleet import Fleet, Unusable
from .kinds import KINDS, Kind

#: A file to which a session adds a line about the databases that it has tested.
MATRIX = "STEADY_QUEUE_TEST_MATRIX"
#: Where a worker of pytest-xdist leaves what it has found.
FOUND = "steady_queue_databases"


class ServerSession:
    """A plugin of pytest."""

    def __init__(self) -> None:
        try:
            self.fleet = Fleet()
        except Unusable as error:
            raise pytest.UsageError(str(error)) from None
        #: How many of the tests need a server, by alias.
        self._tests: Counter[str] = Counter()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line(
            "markers", "server(*aliases): needs these database servers, as do databases=[alias]"
        )

    def pytest_report_header(self) -> list[str]:
        return [
            f"{kind.title}: {self.fleet.missing.get(alias) or self.fleet.origin(alias)}"
            for alias, kind in KINDS.items()
        ]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        if config.getoption("--no-servers"):
            others = [item for item in items if needs(item)]
            items[:] = [item for item in items if not needs(item)]
            config.hook.pytest_deselected(items=others)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.config.option.collectonly:
            return
        self._tests = Counter(alias for item in session.items for alias in needs(item))
        self._start(set(self._tests))
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[FOUND] = self._found()
        for item in session.items:
            for alias in needs(item) & self.fleet.missing.keys():
                reason = f"no {KINDS[alias].title} here; the summary of the databases says why"
                item.add_marker(pytest.mark.skip(reason=reason))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has found; each one has collected all tests."""
        found = getattr(node, "workeroutput", {}).get(FOUND)
        if found is not None:
            self.fleet.versions, self.fleet.missing, tests = found
            self._tests = Counter(tests)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        terminalreporter.section("databases")
        terminalreporter.line(f"{_sqlite()}: the default")
        for alias, kind in KINDS.items():
            terminalreporter.line(self._report(alias, kind.title))
        # The workers of pytest-xdist get here as well.
        if (path := os.environ.get(MATRIX)) and not hasattr(config, "workerinput"):
            self._add_to_matrix(Path(path))

    def pytest_unconfigure(self) -> None:
        self.fleet.close()

    def _found(self) -> list[dict[str, Any]]:
        return [self.fleet.versions, self.fleet.missing, dict(self._tests)]

    def _start(self, aliases: set[str]) -> None:
        try:
            self.fleet.start(aliases)
        except Unusable as error:
            raise pytest.UsageError(str(error)) from None
        for alias, address in self.fleet.running.items():
            settings.DATABASES[alias] = address.settings()
        # Django has read the settings already, and completes what has come since.
        connections.configure_settings(connections.settings)

    def _report(self, alias: str, title: str) -> str:
        if alias in self.fleet.missing:
            return f"{title}: NOT TESTED: {self.fleet.missing[alias]}"
        if alias not in self.fleet.versions:
            return f"{title}: not needed ({self.fleet.origin(alias)})"
        seconds = self.fleet.seconds(alias)
        took = f" in {seconds:.1f} s" if seconds else ""
        tests = f", {self._tests[alias]} tests" if alias in self._tests else ""
        return f"{self.fleet.versions[alias]}: {self.fleet.origin(alias)}{took}{tests}"

    def _add_to_matrix(self, path: Path) -> None:
        versions = self.fleet.versions
        servers = [
            f"{versions[alias]} ({driver_of(kind)})" if alias in versions else f"no {kind.title}"
            for alias, kind in KINDS.items()
        ]
        python = f"Python {platform.python_version()}, Django {django.get_version()}"
        with path.open("a") as matrix:
            matrix.write(f"{python}: {', '.join([_sqlite(), *servers])}\n")


def needs(item: pytest.Item) -> set[str]:
    """Return the aliases of the servers that a test needs.

    That is what ``databases`` names, of its class or of its mark ``django_db``, and what the mark
    ``server`` names.
    """
    named = set(getattr(getattr(item, "cls", None), "databases", None) or ())
    for mark in item.iter_markers("django_db"):
        named |= set(mark.kwargs.get("databases") or ())
    for mark in item.iter_markers("server"):
        named |= set(mark.args)
    return named & KINDS.keys()


def driver_of(kind: Kind) -> str:
    """Return the name of the driver by which Django talks to a kind of server."""
    return "psycopg" if kind.scheme == "postgresql" else mysql_driver()


def _sqlite() -> str:
    return f"SQLite {sqlite3.sqlite_version}"
