"""Two shards, on each pair of databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.compat import TaskResult, task_backends
from steady_queue_core.models import Job
from steady_queue_core.sharding import ShardedBackend

from ..aliases import added_alias
from ..core.driver import Driver
from ..servers.kinds import KINDS
from .tasks import OURS, SHARDED

#: A database beside the default one, made for each test.
SECOND = "second"


def _on(alias: str) -> Any:
    databases = ["default"] if alias == SECOND else ["default", alias]
    mark = pytest.mark.django_db(databases=databases, transaction=True)
    return pytest.param(alias, marks=mark, id="sqlite" if alias == SECOND else alias)


#: Gives ``west``, the database of the second shard, for the fixture ``shards``.
on_every_pair = pytest.mark.parametrize("west", [_on(SECOND), *map(_on, KINDS)])
on_sqlite = pytest.mark.parametrize("west", [_on(SECOND)])


def tasks_in(east: str, west: str, *, key: str | None = "customer_id", **more: Any) -> Any:
    """Return ``TASKS`` with two shards, and ``more`` of their options."""
    return {
        "default": {
            "BACKEND": SHARDED, "QUEUES": [], "OPTIONS": {"shards": ["east", "west"], "key": key},
        },
        "east": {"BACKEND": OURS, "QUEUES": [], "OPTIONS": {"database": east, **more}},
        "west": {"BACKEND": OURS, "QUEUES": [], "OPTIONS": {"database": west, **more}},
    }  # fmt: skip


@contextmanager
def copied_database(folder: Path) -> Iterator[None]:
    """Have a database ``SECOND`` with the tables of the default one, as they are now."""
    path = folder / "second.sqlite3"
    default = connections["default"]
    default.ensure_connection()
    copy = sqlite3.connect(path)
    default.connection.backup(copy)
    copy.close()
    with added_alias(SECOND, {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}):
        yield


class Shards:
    """The two shards of a test."""

    def __init__(self, settings: Any, west: str) -> None:
        self.settings = settings
        self.databases = {"east": "default", "west": west}

    def configure(self, **options: Any) -> None:
        self.settings.TASKS = tasks_in("default", self.databases["west"], **options)

    @property
    def backend(self) -> ShardedBackend:
        found = task_backends["default"]
        assert isinstance(found, ShardedBackend)
        return found

    def jobs(self, shard: str) -> Any:
        return Job.objects.using(self.databases[shard]).order_by("pk")

    def counts(self) -> dict[str, int]:
        return {shard: self.jobs(shard).count() for shard in self.databases}

    def keys(self, shard: str, number: int = 1) -> list[int]:
        """Return the first keys that a shard has."""
        found = [key for key in range(1000) if self.backend.shard_for(key).alias == shard]
        return found[:number]

    def finish(self, result: TaskResult) -> TaskResult:
        """Run everything in both shards; return ``result`` with what became of it."""
        for using in self.databases.values():
            Driver(using).work()
        result.refresh()
        return result


@contextmanager
def shards_of(settings: Any, west: str, folder: Path) -> Iterator[Shards]:
    with ExitStack() as stack:
        if west == SECOND:
            stack.enter_context(copied_database(folder))
        shards = Shards(settings, west)
        shards.configure()
        yield shards
