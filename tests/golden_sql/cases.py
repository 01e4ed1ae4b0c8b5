"""What the cases share: a database, sessions to record, and the files to compare with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from time import sleep
from typing import Any
from unittest import mock

import pytest
from django.core.management.color import no_style
from django.test import TransactionTestCase

from steady_queue_core.conformance.base import ConformanceCase
from steady_queue_core.conformance.inspection import TABLES
from steady_queue_core.dialects.portable import Bookmarks

from .files import difference, form_of, golden, write
from .layout import (
    FIRST_BATCH,
    FIRST_DEPENDENCY,
    FIRST_JOB,
    FIRST_MEMBER,
    FIRST_PROCESS,
    page,
)
from .recorder import Sent, recorded

#: The aliases of the databases, with the titles of their classes and their folders.
DATABASES = {
    "default": ("SQLite", "sqlite"),
    "postgres": ("PostgreSQL", "postgres"),
    "mysql": ("MySQL", "mysql"),
    "mariadb": ("MariaDB", "mariadb"),
}


class GoldenCase(ConformanceCase):
    """Records operations of a dialect, each in a new session, and compares them with a file."""

    @pytest.fixture(autouse=True)
    def _options(self, request: pytest.FixtureRequest) -> None:
        self.writes = request.config.getoption("--write-sql", default=False)

    def setUp(self) -> None:
        super().setUp()
        self.sections: dict[str, list[Sent]] = {}
        # Whether a claim asks how many jobs are in paused queues depends on the time.
        scan_position = sys.modules[Bookmarks.__module__]
        self.enterContext(mock.patch.object(scan_position, "ASK_INTERVAL", 3600.0))
        self.addCleanup(self.connection.close)

    def record(
        self,
        title: str,
        operation: Callable[..., object],
        *,
        given: Callable[[], Any] | None = None,
        in_worker: bool = True,
    ) -> None:
        """Record ``operation``, of what ``given`` returns, in a session of a worker's own or of the
        project's."""
        self._empty_tables()
        values = () if given is None else (given(),)
        self._begin_session(in_worker)
        with recorded(self.connection) as sent:
            operation(*values)
        self.sections[title] = sent

    def compare(self, name: str) -> None:
        """Compare what was recorded with the file ``name``, or write the file."""
        folder = DATABASES[self.using][1]
        form = form_of(page(self.sections), folder, name)
        if self.writes:
            write(folder, name, form)
        found = difference(golden(folder, name), form)
        assert not found, f"{folder}/{name} is out of date: `make sql` writes it anew\n{found}"

    def _empty_tables(self) -> None:
        """Delete all rows, let ids begin where no other number is, and names of processes anew."""
        self._numbers = count()
        for name in TABLES:
            self.rows(name).delete()
        present = self.stored(self.present())
        self.rows("Job").create(
            pk=FIRST_JOB, queue_name="q", task_path="t", backend_name="b", arguments="{}",
            enqueued_at=present, finished_at=present,
        )  # fmt: skip
        self.rows("Process").create(
            pk=FIRST_PROCESS, kind="Worker", name="first", pid=1, hostname="here",
            created_at=present, last_heartbeat_at=present,
        )  # fmt: skip
        self.rows("JobBatch").create(
            pk=FIRST_BATCH, kind="batch", backend_name="b", created_at=present
        )
        self.rows("BatchMember").create(pk=FIRST_MEMBER, batch_id=FIRST_BATCH)
        self.rows("Dependency").create(
            pk=FIRST_DEPENDENCY, job_id=FIRST_JOB, parent_id=FIRST_MEMBER, run_when=0, state=0,
            number=0,
        )  # fmt: skip
        first = ("Job", "Process", "JobBatch", "BatchMember", "Dependency")
        models = [self.rows(name).model for name in first]
        with self.connection.cursor() as cursor:
            for reset in self.connection.ops.sequence_reset_sql(no_style(), models):
                cursor.execute(reset)
        for name in first:
            self.rows(name).delete()

    def _begin_session(self, in_worker: bool) -> None:
        self.connection.close()
        for name in ("bookmark", "bookmarks", "claimers", "locked_jobs", "held_up"):
            vars(self.connection).pop(f"steady_queue_{name}", None)
        if in_worker:
            self.dialect.prepare(self.connection, impatient=True)
        else:
            self.dialect.share(self.connection)
        self.present()  # Drivers and dialects ask some things once.
        sleep(0.02)  # A wake-up that follows another one at once may be left out.


def on_each_database(namespace: dict[str, Any], case: type[GoldenCase]) -> None:
    """Add a test class for each database to the module whose names are in ``namespace``."""
    for alias, (title, _) in DATABASES.items():
        name = f"Test{title}{case.__name__}"
        members = {"using": alias, "databases": {alias}, "__module__": namespace["__name__"]}
        namespace[name] = type(name, (case, TransactionTestCase), members)
