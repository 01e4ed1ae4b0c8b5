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


class Histories:
    """The databases so far, by kind and size. They are dropped with the session."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._aliases: dict[tuple[str, int], str] = {}
        self._analyzed: set[str] = set()

    def alias(self, kind: str, jobs: int, *, analyzed: bool) -> str:
        """Return the alias of a database with that many jobs."""
        from django.db import connections

        alias = self._aliases.get((kind, jobs)) or self._make(kind, jobs)
        self._aliases[kind, jobs] = alias
        if analyzed and alias not in self._analyzed:
            self._analyzed.add(alias)
            analyze(connections[alias])
        return alias

    def _make(self, kind: str, jobs: int) -> str:
        alias = f"{kind}_with_{jobs}"
        self._stack.enter_context(added_alias(alias, self._settings(kind)))
        build(alias, Shape.of(jobs))
        return alias

    def _settings(self, kind: str) -> dict[str, Any]:
        if kind == "sqlite":
            ram = Path("/dev/shm")
            folder = mkdtemp(prefix="steady-queue-", dir=ram if ram.is_dir() else None)
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder}/queue.sqlite3"}
        server = KINDS[kind].given()
        assert server is not None
        return self._stack.enter_context(client.fresh_database(server)).settings()


@pytest.fixture(scope="session")
def _histories(django_db_setup: None, django_db_blocker: Any) -> Iterator[Histories]:
    with django_db_blocker.unblock(), ExitStack() as stack:
        yield Histories(stack)


@pytest.fixture
def histories(_histories: Histories, django_db_blocker: Any) -> Iterator[Histories]:
    """The databases, which may be used without a mark."""
    with django_db_blocker.unblock():
        yield _histories
