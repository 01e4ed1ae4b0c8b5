"""The servers of one session of pytest: started when the tests that were chosen need them.

With pytest-xdist the controlling process has them, and its workers ask it. Each of them has
databases of its own there.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import connections

from .address import Address, mysql_driver
from .desk import Desk, Place
from .fleet import Fleet, Unusable
from .kinds import KINDS, Kind

#: A file to which a session adds a line about the databases that it has tested.
MATRIX = "STEADY_QUEUE_TEST_MATRIX"
#: Where a worker of pytest-xdist finds the desk at which to ask.
DESK = "steady_queue_servers"
#: Which servers are missing, for a worker.
MISSING = "steady_queue_missing_servers"

#: Addresses of servers that answer, and why others are missing, by alias.
Provided = tuple[dict[str, str], dict[str, str]]


def missing_servers(config: pytest.Config) -> Container[str]:
    """Return the aliases of the servers that the tests have to do without."""
    if config.getoption("--no-servers"):
        return KINDS
    if (worker := getattr(config, "workerinput", None)) is not None:
        return set(worker[MISSING])
    sessions = config.pluginmanager.get_plugins()
    return next(each.fleet.missing for each in sessions if isinstance(each, ServerSession))


class ServerTests:
    """A plugin of pytest: gives the tests the servers that they need."""

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line(
            "markers", "server(*aliases): needs these database servers, as do databases=[alias]"
        )

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
        tests = Counter(alias for item in session.items for alias in needs(item))
        try:
            running, missing = self.provide(tests) if tests else ({}, {})
        except Unusable as error:
            raise pytest.UsageError(str(error)) from None
        for alias, address in running.items():
            os.environ[KINDS[alias].variable] = address
            settings.DATABASES[alias] = Address.parse(address, KINDS[alias].scheme).settings()
        # Django has read the settings already, and completes what has come since.
        connections.configure_settings(connections.settings)
        for item in session.items:
            for alias in needs(item) & missing.keys():
                reason = f"no {KINDS[alias].title} here; the summary of the databases says why"
                item.add_marker(pytest.mark.skip(reason=reason))

    def provide(self, tests: dict[str, int]) -> Provided:
        """Start the servers that so many tests need."""
        raise NotImplementedError


class WorkerServers(ServerTests):
    """The plugin of a worker of pytest-xdist, which shares the servers with the others."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def provide(self, tests: dict[str, int]) -> Provided:
        running, missing = self._place.ask(tests)
        return running, missing


class ServerSession(ServerTests):
    """The plugin of a session: starts the servers, ends them, and reports them."""

    def __init__(self) -> None:
        try:
            self.fleet = Fleet()
        except Unusable as error:
            raise pytest.UsageError(str(error)) from None
        #: How many of the tests need a server, by alias.
        self._tests: dict[str, int] = {}
        self._desk: Desk | None = None
        self._refusal = ""

    def pytest_report_header(self) -> list[str]:
        return [
            f"{kind.title}: {self.fleet.missing.get(alias) or self.fleet.origin(alias)}"
            for alias, kind in KINDS.items()
        ]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist where to ask."""
        self._desk = self._desk or Desk(self.provide)
        node.workerinput[DESK] = [self._desk.place.port, self._desk.place.word]
        node.workerinput[MISSING] = [*self.fleet.missing]

    def provide(self, tests: dict[str, int]) -> Provided:
        # Each worker has collected all tests.
        self._tests = tests
        self.fleet.start(tests)
        running = {alias: str(self.fleet.running[alias]) for alias in tests
                   if alias in self.fleet.running}  # fmt: skip
        return running, self.fleet.missing

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("databases")
        terminalreporter.line(f"{_sqlite()}: the default")
        for alias, kind in KINDS.items():
            terminalreporter.line(self._report(alias, kind.title))
        if path := os.environ.get(MATRIX):
            self._add_to_matrix(Path(path))

    def pytest_unconfigure(self) -> None:
        if self._desk is not None:
            self._desk.close()
        self.fleet.close()

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


def plugin(config: pytest.Config) -> ServerTests:
    """Return the plugin for this process."""
    workerinput = getattr(config, "workerinput", None)
    return ServerSession() if workerinput is None else WorkerServers(Place(*workerinput[DESK]))


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
