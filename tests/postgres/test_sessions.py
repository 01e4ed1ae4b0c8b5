"""Connections: what is set on them, shared ones, lost ones, and servers that are not fit."""

from __future__ import annotations

import os
from unittest import mock

import pytest
from django.db import DatabaseError, connections
from django.db.transaction import atomic

from steady_queue_core.dialects import DialectUnsupported, QueueSelector, dialect_for, tables
from steady_queue_postgres import pooler, prepared, session, transactions
from steady_queue_postgres.prepared import fetch
from steady_queue_postgres.transactions import planned_transaction

from .aliases import ALIAS
from .cases import OtherAlias, PostgresTestCase
from .poolers import pgbouncer

SETTINGS = "SELECT current_setting('enable_seqscan'), current_setting('lock_timeout')"
ISOLATION = "SELECT current_setting('transaction_isolation')"
READ_ONLY = {"options": "-c default_transaction_read_only=on"}


class TestPreparing(PostgresTestCase):
    """In a queue process the hot statements bring settings along; nothing else has them."""

    def test_no_other_statement_is_touched_by_the_settings_of_the_hot_ones(self) -> None:
        """Neither the queue's upkeep nor a project's hook, in a transaction of its own or not."""
        self.enqueue_many(30)
        self.elsewhere(self.look_between_hot_statements)

    def look_between_hot_statements(self) -> None:
        before = self.settings()
        self.dialect.prepare(self.connection, impatient=True)
        assert self.settings() == before
        worker, selector = self.register(), QueueSelector()
        for _ in range(3):
            claims = self.claim(2, process_id=worker)
            assert self.settings() == before
            ended = [self.finished(claim) for claim in claims]
            identity = self.identity(worker)
            self.dialect.settle_and_claim(self.connection, ended, identity, selector, 2)
            self.dialect.dispatch(self.connection, 5)
            with atomic(using=self.using):
                assert self.settings() == before
                self.dialect.admit(self.connection, ["k"])
                assert self.settings() == before
        with self.dialect.transaction(self.connection):
            bounded = {"lock_timeout": "2s", "idle_in_transaction_session_timeout": "8s"}
            assert self.settings() == {**before, **bounded}
        assert self.settings() == before

    def settings(self) -> dict[str, str]:
        names = [*prepared.SETTINGS, "default_transaction_isolation", "transaction_isolation"]
        return {name: self.query("SELECT current_setting(%s)", [name])[0][0] for name in names}

    def test_the_hot_statements_run_under_them_without_a_round_trip_more(self) -> None:
        def work() -> None:
            self.dialect.prepare(self.connection, impatient=True)
            shown = (
                f"SELECT {', '.join(f'current_setting({name!r})' for name in prepared.SETTINGS)}"
            )
            for _ in range(2):
                with self.statements() as sent:
                    found = fetch(self.connection, shown, {})
            assert len(sent) == 1
            assert found == [("off", "off", "off", "force_generic_plan", "off", "2s", "8s")]

        self.elsewhere(work)

    def test_other_statements_of_the_queues_transactions_have_plans_as_the_session_has_them(
        self,
    ) -> None:
        shown = f"SELECT {', '.join(f'current_setting({name!r})' for name in prepared.SETTINGS)}"
        seen = []

        def work() -> None:
            self.dialect.prepare(self.connection, impatient=True)
            self.query("SET jit = on; SET enable_bitmapscan = off")
            with self.dialect.transaction(self.connection):
                for _ in range(2):
                    seen.append(fetch(self.connection, shown, {})[0])
                    seen.append(self.query(shown)[0])
            seen.append(self.query(shown)[0])
            with atomic(using=self.using):
                fetch(self.connection, shown, {})
                seen.append(self.query(shown)[0])

        self.elsewhere(work)
        plans, own = ("off", "off", "off", "force_generic_plan", "off"), ("2s", "8s")
        usual = ("on", "off", "on", "auto", "on")
        assert seen[:4] == [plans + own, usual + own] * 2
        # Neither a single statement nor the project's transactions.
        assert [each[:5] for each in seen[4:]] == [usual] * 2
        assert [each[5:] for each in seen[4:]] == [("0", "0")] * 2

    def test_an_impatient_thread_gives_up_waiting_for_a_lock(self) -> None:
        [job_id] = self.enqueue_many(1)
        rows = self.rows("ReadyExecution").filter(pk=job_id)

        def wait() -> BaseException | None:
            self.dialect.prepare(self.connection, impatient=True)
            try:
                with self.dialect.transaction(self.connection):
                    rows.update(rank=1)
            except DatabaseError as error:
                return error
            return None

        with (
            mock.patch.object(transactions, "SET_TIMEOUTS", "SET LOCAL lock_timeout = 50"),
            self.holding(lambda: rows.update(rank=2)),
        ):
            error = self.elsewhere(wait)
        assert error is not None
        assert self.dialect.is_contention(self.connection, error)

    def test_a_server_too_old_is_refused_by_both_versions(self) -> None:
        self.connection.ensure_connection()
        with mock.patch.object(session, "MINIMUM_VERSION", 99):
            with pytest.raises(DialectUnsupported, match=r"PostgreSQL \d+\.\d+; .* 99 or newer"):
                self.dialect.prepare(self.connection)
            [found] = self.dialect.checks(self.connection)
        assert found.id == "steady_queue.E201"

    def test_the_migration_has_tuned_the_tables(self) -> None:
        [(options,)] = self.query(
            "SELECT reloptions FROM pg_class WHERE oid = %s::regclass", [tables.READY]
        )
        assert {"fillfactor=70", "autovacuum_vacuum_scale_factor=0"} <= set(options)


class TestImitations(PostgresTestCase):
    def test_another_product_is_told_by_what_it_says_of_itself(self) -> None:
        for said, name in (
            (
                {"crdb_version": "CockroachDB CCL v23.1.11", "server_version": "13.0.0"},
                "CockroachDB",
            ),
            ({"server_version": "15.2-YB-2.25.0.0-b0"}, "YugabyteDB"),
            ({"server_version": "15.18 (Debian 15.18-0+deb12u1)"}, ""),
            ({}, ""),
        ):
            assert session.imitation(said.get) == name

    def test_it_is_refused_by_name(self) -> None:
        with (
            mock.patch.object(session, "imitation", return_value="CockroachDB"),
            pytest.raises(DialectUnsupported, match="is CockroachDB, which speaks the protocol"),
        ):
            self.dialect.prepare(self.connection)
        session.require_version(self.connection)


class TestReadOnlyServers(OtherAlias):
    """As after a failover, while the old address leads to a standby."""

    def test_writing_is_refused_and_the_check_says_so(self) -> None:
        with self.configured(READ_ONLY):
            with pytest.raises(DatabaseError) as raised:
                self.enqueue_many(1)
            assert not self.dialect.is_lost_connection(self.connection, raised.value)
            assert not self.dialect.is_contention(self.connection, raised.value)
            assert [found.id for found in self.problems()] == ["steady_queue.E202"]


class TestTimeOuts(OtherAlias):
    def test_a_statement_time_out_is_worth_another_try(self) -> None:
        with self.configured({"options": "-c statement_timeout=30"}):
            with pytest.raises(DatabaseError) as raised:
                self.query("SELECT pg_sleep(5)")
            assert self.dialect.is_contention(self.connection, raised.value)
            assert not self.dialect.is_lost_connection(self.connection, raised.value)

    def test_a_session_ended_by_the_administrator_is_lost(self) -> None:
        with self.configured():
            [(pid,)] = self.query("SELECT pg_backend_pid()")
            self.elsewhere_on_default(pid)
            with pytest.raises(DatabaseError) as raised:
                self.enqueue_many(1)
            assert self.dialect.is_lost_connection(self.connection, raised.value)
            self.connection.close()
            assert len(self.enqueue_many(1)) == 1

    def elsewhere_on_default(self, pid: int) -> None:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

    def test_a_refused_connection_is_lost(self) -> None:
        with self.configured(PORT="1"):
            with pytest.raises(DatabaseError) as raised:
                self.query("SELECT 1")
            assert self.dialect.is_lost_connection(self.connection, raised.value)


class TestOtherIsolation(OtherAlias):
    def test_the_check_warns_and_the_queues_own_thread_reads_committed(self) -> None:
        with self.configured({"isolation_level": 3}):
            assert [found.id for found in self.problems()] == ["steady_queue.W201"]
            said = self.dialect.prepare(self.connection, impatient=True)
            assert any("READ COMMITTED" in sentence for sentence in said)
            for transaction in (self.dialect.transaction, planned_transaction):
                with transaction(self.connection):
                    assert self.query("SHOW transaction_isolation") == [("read committed",)]
            # A project's own are as the project has them.
            with atomic(using=self.using):
                assert self.query("SHOW transaction_isolation") == [("repeatable read",)]

    def test_single_statements_read_committed_under_any_default(self) -> None:
        for binding in (False, True):
            options = {
                "options": "-c default_transaction_isolation=serializable",
                "server_side_binding": binding,
            }
            with self.configured(options):
                self.dialect.prepare(self.connection, impatient=True)
                for _ in range(2):
                    shown = fetch(self.connection, ISOLATION, {})
                    assert shown == [("read committed",)]
                with planned_transaction(self.connection):
                    shown = fetch(self.connection, ISOLATION, {})
                    assert shown == [("read committed",)]
                assert self.query("SHOW transaction_isolation") == [("serializable",)]


class TestUndeclaredPooler(OtherAlias):
    """A pgbouncer in transaction mode, of which the settings say nothing."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.enterContext(pgbouncer())
        address = {"HOST": "127.0.0.1", "PORT": str(self.server.port)}
        self.enterContext(self.configured({"prepare_threshold": 1}, **address))

    def test_it_is_noticed(self) -> None:
        assert pooler.is_pooled(self.connection)
        assert not pooler.is_pooled(connections[ALIAS])
        assert self.dialect.wakeup(self.connection) is None
        assert [found.id for found in self.problems()] == ["steady_queue.W202"]

    def test_no_session_keeps_anything(self) -> None:
        dialect_for(self.using).prepare(self.connection, impatient=True)
        assert self.query(SETTINGS) == [("on", "0")]
        assert self.connection.connection.prepare_threshold is None

    def test_a_ring_passes_it(self) -> None:
        with self.statements() as sent:
            dialect_for(self.using).ring(self.connection, ["mail"])
        assert len(sent) == 1


class TestForks(OtherAlias):
    def test_a_forked_child_has_a_pool_of_its_own(self) -> None:
        pool = {"min_size": 1, "max_size": 2}
        with self.configured({"pool": pool}):
            self.dialect.share(self.connection)
            [(ours,)] = self.query("SELECT pg_backend_pid()")
            read_end, write_end = os.pipe()
            child = os.fork()
            if child == 0:
                self.report_backend(write_end)
            os.close(write_end)
            with os.fdopen(read_end) as report:
                theirs = report.read()
            assert os.waitpid(child, 0)[1] == 0
            assert theirs.isdigit()
            assert int(theirs) != ours
            assert self.query("SELECT pg_backend_pid()") == [(ours,)]

    def report_backend(self, descriptor: int) -> None:
        code = 1
        try:
            os.write(descriptor, str(self.query("SELECT pg_backend_pid()")[0][0]).encode())
            self.connection.close()
            self.connection.close_pool()
            code = 0
        finally:
            os._exit(code)
