"""Empty queue databases for measuring a dialect from this process, without workers.

The servers are those of the test suite: given by its environment variables, or started for the
measurement, on a RAM disk where there is one, and without durability.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

from steady_queue_core.dialects import ProcessIdentity
from tests.servers import client
from tests.servers.fleet import Fleet
from tests.servers.kinds import KINDS

DATABASES = (*KINDS, "sqlite")
BACKEND = "steady_queue_core.backend.SteadyQueueBackend"

_numbers = count()


def chosen(names: str | None) -> list[str]:
    """Return the databases in a comma-separated option; all by default."""
    found = list(DATABASES) if names is None else names.split(",")
    if unknown := set(found).difference(DATABASES):
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are: {', '.join(DATABASES)}")
    return found


def set_up(*apps: str, **others: Any) -> None:
    """Set Django up for queues on databases that are added later; with further ``apps`` and other
    settings."""
    backport = ["django_tasks"] if django.VERSION < (6, 0) else []
    settings.configure(
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[*apps, "steady_queue_core", *backport],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        TASKS={"default": {"BACKEND": BACKEND}},
        **others,
    )
    django.setup()


@contextmanager
def queues(kind: str, aliases: Sequence[str]) -> Iterator[str]:
    """Point each of ``aliases`` at an empty queue on a database of ``kind``; yield the name and
    version of that database. Raise ``LookupError`` if there is no server."""
    with ExitStack() as stack:
        if kind == "sqlite":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for alias in aliases:
                _add(stack, alias, _file(folder / f"{alias}.sqlite3"))
            yield f"SQLite {sqlite3.sqlite_version}"
            return
        fleet = Fleet()
        stack.callback(fleet.close)
        fleet.start({kind})
        if kind in fleet.missing:
            raise LookupError(fleet.missing[kind])
        for alias in aliases:
            address = stack.enter_context(client.fresh_database(fleet.running[kind]))
            _add(stack, alias, address.settings())
        yield fleet.versions[kind]


@contextmanager
def queue_at(alias: str, database: dict[str, Any]) -> Iterator[None]:
    """Point ``alias`` at a database, and make its tables."""
    with ExitStack() as stack:
        _add(stack, alias, database)
        yield


def backend_on(alias: str) -> AbstractContextManager[None]:
    """Let tasks store their jobs in the queue of this alias."""
    backend = {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"database": alias}}
    return override_settings(TASKS={"default": backend})


def register(alias: str) -> ProcessIdentity:
    """Register this process as a worker, or as one more."""
    from steady_queue_core.models import process  # Not before Django is set up.

    return process.register(
        alias, kind="worker", name=f"benchmark-{os.getpid()}-{next(_numbers)}", pid=os.getpid(),
        hostname="localhost", supervisor_id=None, metadata="{}",
    )  # fmt: skip


def _file(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"},
    }


def _add(stack: ExitStack, alias: str, database: dict[str, Any]) -> None:
    connections.settings[alias] = database
    connections.configure_settings(connections.settings)
    stack.callback(connections.settings.pop, alias)
    stack.callback(lambda: connections[alias].close())
    call_command("migrate", database=alias, verbosity=0, interactive=False)
