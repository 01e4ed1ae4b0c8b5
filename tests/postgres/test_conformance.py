"""The PostgreSQL dialect keeps what the contract promises, however the project is configured."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase, override_settings

from steady_queue_core.conformance import DialectConformance
from steady_queue_core.conformance.cancellation import CancellationCases
from steady_queue_core.conformance.checkpoints import CheckpointCases
from steady_queue_core.conformance.claim import ClaimCases
from steady_queue_core.conformance.claim_sharing import ClaimSharingCases
from steady_queue_core.conformance.clock import ClockCases
from steady_queue_core.conformance.dispatch import DispatchCases
from steady_queue_core.conformance.enqueue import EnqueueCases
from steady_queue_core.conformance.errors import ErrorCases
from steady_queue_core.conformance.expiry import ExpiryCases
from steady_queue_core.conformance.isolation import IsolationCases
from steady_queue_core.conformance.permits import PermitCases
from steady_queue_core.conformance.retention import RetentionCases
from steady_queue_core.conformance.semaphores import SemaphoreCases
from steady_queue_core.conformance.sequels import SequelCases
from steady_queue_core.conformance.settle import SettleCases
from steady_queue_core.conformance.settle_and_claim import SettleAndClaimCases
from steady_queue_core.conformance.settle_members import SettleMembersCases
from steady_queue_core.conformance.steps import StepCases
from steady_queue_core.conformance.transactions import TransactionCases
from steady_queue_core.conformance.unique import UniqueKeyCases
from steady_queue_core.conformance.upserts import UpsertCases
from steady_queue_core.conformance.wakeup import WakeupCases
from steady_queue_postgres import session

from .aliases import ALIAS, another_alias
from .poolers import pgbouncer

#: How sessions begin, wait for each other, are handed over and end.
SESSIONS = (
    TransactionCases, ErrorCases, ClaimSharingCases, PermitCases, SemaphoreCases, WakeupCases,
    IsolationCases,
)  # fmt: skip
#: Where instants are given, stored, compared and read, by SQL or by the ORM.
INSTANTS = (
    ClockCases, EnqueueCases, DispatchCases, ExpiryCases, RetentionCases, CheckpointCases,
    StepCases, UniqueKeyCases, UpsertCases, CancellationCases, SequelCases,
)  # fmt: skip


class PostgresCase:
    using = ALIAS
    databases = {ALIAS}

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '20ms'")


class TestPostgresConformance(PostgresCase, DialectConformance, TransactionTestCase):
    """With Django's defaults: all cases."""


class Configured(
    PostgresCase, TransactionCases, ErrorCases, EnqueueCases, ClaimCases, ClaimSharingCases,
    SettleCases, SettleAndClaimCases, SettleMembersCases, DispatchCases, PermitCases,
    SemaphoreCases, WakeupCases, IsolationCases,
):  # fmt: skip
    """With an alias of its own for the same database: the cases that sessions matter to."""

    using = "configured"
    databases = {ALIAS, "configured"}
    options: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    #: What a run for a merge tests (see ``conftest``); nothing stands for all.
    matters_to: tuple[type, ...] = ()

    @classmethod
    def setUpClass(cls) -> None:
        cls.enterClassContext(another_alias(cls.using, cls.options, **cls.changes))
        super().setUpClass()


class TestPreparedStatements(Configured, TransactionTestCase):
    """With the project's statements prepared by the server at their second use."""

    options = {"server_side_binding": True, "prepare_threshold": 1}


class TestPlannedSessions(Configured, TransactionTestCase):
    """With all connections as the main thread of a queue process has its own."""

    @classmethod
    def setUpClass(cls) -> None:
        prepare = session.prepare
        cls.enterClassContext(
            mock.patch.object(session, "prepare", lambda connection, _: prepare(connection, True))
        )
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        self.dialect.prepare(self.connection)


class TestRepeatableRead(Configured, TransactionTestCase):
    """With the project's transactions in another isolation than PostgreSQL's own."""

    options = {"isolation_level": 3}
    matters_to = SESSIONS


class TestPool(Configured, TransactionTestCase):
    """With Django's connection pool, whose connections are handed from thread to thread."""

    options = {"pool": {"min_size": 0, "max_size": 12, "timeout": 10}}
    matters_to = SESSIONS


@contextmanager
def zoneless() -> Any:
    """Run the project without ``USE_TZ``, in a zone that puts its clocks forward and back."""
    connections[ALIAS].close()
    try:
        with override_settings(USE_TZ=False, TIME_ZONE="America/New_York"):
            yield
    finally:
        connections[ALIAS].close()


class TestWithoutTimeZones(PostgresCase, DialectConformance, TransactionTestCase):
    """All cases: instants are everywhere."""

    matters_to = INSTANTS

    @classmethod
    def setUpClass(cls) -> None:
        cls.enterClassContext(zoneless())
        super().setUpClass()


class TestPgbouncer(Configured, TransactionTestCase):
    """Behind a pooler that hands out servers transaction by transaction."""

    # A dialect is picked once for an alias: this one's says that there is no listener.
    using = "behind_pooler"
    databases = {ALIAS, "behind_pooler"}
    changes = {"DISABLE_SERVER_SIDE_CURSORS": True}
    matters_to = SESSIONS

    @classmethod
    def setUpClass(cls) -> None:
        pooler = cls.enterClassContext(pgbouncer())
        cls.changes = cls.changes | {"HOST": "127.0.0.1", "PORT": str(pooler.port)}
        super().setUpClass()

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        """A setting of the session would be another's."""
