"""Databases with a million jobs, each made once in a session, and small ones to compare with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from ..aliases import added_alias
from ..servers import client
from ..servers.kinds import KINDS
from .building import Shape, analyze, build

LARGE, SMALL = 1_000_000, 10_000


class Databases:
    """The databases so far, by kind and size. They are dropped with the session."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._settings: dict[tuple[str, int], dict[str, Any]] = {}
        self.analyzed: set[str] = set()

    def settings(self, kind: str, jobs: int) -> dict[str, Any]:
        """Return the settings of a database with that many jobs, which is made if need be."""
        found = self._settings.get((kind, jobs))
        if found is None:
            found = self._settings[kind, jobs] = self._new(kind)
            alias = alias_of(kind, jobs)
            with added_alias(alias, found):
                build(alias, Shape.of(jobs))
        return found

    def _new(self, kind: str) -> dict[str, Any]:
        if kind == "sqlite":
            ram = Path("/dev/shm")
            folder = mkdtemp(prefix="steady-queue-", dir=ram if ram.is_dir() else None)
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder}/queue.sqlite3"}
        server = KINDS[kind].given()
        assert server is not None
        return self._stack.enter_context(client.fresh_database(server)).settings()


class Histories:
    """The databases that a test uses. Their aliases are gone when the next one begins: Django would
    forbid a test with a mark to use databases that it does not name."""

    def __init__(self, databases: Databases, stack: ExitStack) -> None:
        self._databases, self._stack = databases, stack
        self._aliases: set[str] = set()

    def alias(self, kind: str, jobs: int, *, analyzed: bool) -> str:
        """Return the alias of a database with that many jobs."""
        from django.db import connections

        alias = alias_of(kind, jobs)
        if alias not in self._aliases:
            settings = self._databases.settings(kind, jobs)
            self._stack.enter_context(added_alias(alias, dict(settings)))
            self._aliases.add(alias)
        if analyzed and alias not in self._databases.analyzed:
            self._databases.analyzed.add(alias)
            analyze(connections[alias])
        return alias


def alias_of(kind: str, jobs: int) -> str:
    return f"{kind}_with_{jobs}"


@pytest.fixture(scope="session")
def _databases(django_db_setup: None, django_db_blocker: Any) -> Iterator[Databases]:
    with django_db_blocker.unblock(), ExitStack() as stack:
        yield Databases(stack)


@pytest.fixture
def histories(_databases: Databases, django_db_blocker: Any) -> Iterator[Histories]:
    """The databases, which may be used without a mark."""
    with django_db_blocker.unblock(), ExitStack() as stack:
        yield Histories(_databases, stack)
