"""Jobs with limits, where the server has transactions of a higher isolation by default."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import psycopg.errors
import pytest
from django.db import DatabaseError, OperationalError, connections
from django.db.transaction import atomic

from steady_queue_core.conformance.base import limited_job, new_job
from steady_queue_core.dialects import contention, tables
from steady_queue_postgres import enqueue_limited

from .cases import PostgresTestCase

WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'"""
LOCK = f"UPDATE {tables.SEMAPHORES} SET value = value"


class DefaultCases:
    """What holds whatever the database's default is."""

    isolation: str

    def setUp(self: Any) -> None:
        super().setUp()
        self.addCleanup(self._change, "RESET default_transaction_isolation")
        self._change(f"SET default_transaction_isolation = '{self.isolation}'")
        assert self.query("SHOW transaction_isolation") == [(self.isolation,)]

    def _change(self: Any, change: str) -> None:
        name = self.connection.ops.quote_name(self.connection.settings_dict["NAME"])
        self.query(f"ALTER DATABASE {name} {change}")
        connections[self.using].close()

    def is_awaited(self: Any) -> bool:
        [(number,)] = self.query(WAITING)
        return bool(number)

    def check_all(self: Any, number: int, admitted: int) -> None:
        self.check_states()
        self.check_permits()
        assert len(self.ids("Ready")) == admitted
        assert len(self.ids("Ready")) + len(self.ids("Blocked")) == number

    def test_a_free_permit_takes_one_statement(self: Any) -> None:
        with self.statements() as sent:
            self.enqueue(limited_job("a"), limited_job("b"), new_job())
        assert len(sent) == 1
        self.check_all(3, admitted=3)

    def test_who_waits_for_a_semaphore_gets_its_permit_once(self: Any) -> None:
        self.enqueue(limited_job(to=3))
        with self.holding(lambda: self.query(LOCK)) as end:
            enqueueing = self.begin(lambda: self.enqueue(limited_job(to=3)))
            self.wait_until(self.is_awaited, "an enqueue that waits")
            end(commit=True)
            enqueueing.result(timeout=self.patience)
        self.check_all(2, admitted=2)

    def test_several_of_one_key_wait_in_one_transaction(self: Any) -> None:
        self.enqueue(limited_job(to=3))
        with self.holding(lambda: self.query(LOCK)) as end:
            enqueueing = self.begin(lambda: self.enqueue(*[limited_job(to=3)] * 3))
            self.wait_until(self.is_awaited, "an enqueue that waits")
            end(commit=True)
            enqueueing.result(timeout=self.patience)
        self.check_all(4, admitted=3)

    def test_many_at_once_that_change_the_limit_store_each_job_once(self: Any) -> None:
        def work(to: int) -> Any:
            return lambda: [self.enqueue(limited_job(to=to + n % 2)) for n in range(15)]

        self.in_threads([work(to) for to in (1, 2, 3, 4)])
        assert len(self.ids("Ready")) + len(self.ids("Blocked")) == 60
        self.check_states()
        self.check_permits()

    def test_the_queues_own_transactions_are_read_committed(self: Any) -> None:
        shown = []
        for _ in range(2):
            with self.dialect.transaction(self.connection):
                shown += self.query("SHOW transaction_isolation")
        assert shown == [("read committed",)] * 2
        with atomic(using=self.using):
            assert self.query("SHOW transaction_isolation") == [(self.isolation,)]


class TestReadCommitted(DefaultCases, PostgresTestCase):
    isolation = "read committed"


class TestRepeatableRead(DefaultCases, PostgresTestCase):
    isolation = "repeatable read"


class TestSerializable(DefaultCases, PostgresTestCase):
    isolation = "serializable"

    def test_a_transaction_of_the_callers_is_left_as_it_is(self) -> None:
        self.connection.set_autocommit(False)
        try:
            self.query(f"SELECT count(*) FROM {tables.JOBS}")
            self.enqueue(limited_job(to=1), limited_job(to=1))
            assert self.query("SHOW transaction_isolation") == [("serializable",)]
            self.connection.commit()
        finally:
            self.connection.rollback()
            self.connection.set_autocommit(True)
        self.check_all(2, admitted=1)


class TestContention(PostgresTestCase):
    """A deadlock between the insertion and the admission of a job whose limit has changed."""

    def setUp(self) -> None:
        super().setUp()
        [self.holder] = self.enqueue(limited_job())

    def deadlocks(self, times: int) -> Any:
        """Raise deadlocks where semaphores are locked to admit jobs."""
        self.tries = 0
        lock = enqueue_limited.set_limits

        def set_limits(*given: Any) -> None:
            self.tries += 1
            lock(*given)
            if self.tries <= times:
                raise OperationalError from psycopg.errors.DeadlockDetected("made up for a test")

        return mock.patch.object(enqueue_limited, "set_limits", set_limits)

    def test_only_the_admission_is_repeated(self) -> None:
        with self.deadlocks(2):
            [job] = self.enqueue(limited_job(to=2))
        assert self.tries == 3
        assert self.ids("Ready") == [self.holder, job]

    def test_a_job_that_cannot_be_admitted_is_stored_and_waits(self) -> None:
        with (
            self.deadlocks(1000),
            mock.patch.object(contention, "PATIENCE", 0.05),
            self.assertLogs("steady_queue.postgres", "WARNING") as logged,
        ):
            [job] = self.enqueue(limited_job(to=2))
        assert [record.event for record in logged.records] == ["enqueue.not_admitted"]
        assert (self.ids("Ready"), self.ids("Blocked")) == ([self.holder], [job])
        self.settle(self.finished(*self.claim()))
        assert self.ids("Ready") == [job]
        self.check_permits()

    def test_a_job_that_must_not_wait_is_discarded_and_the_others_are_stored(self) -> None:
        jobs = limited_job(to=2, discards=True), new_job()
        with self.deadlocks(1000), mock.patch.object(contention, "PATIENCE", 0.05):
            stored = self.dialect.enqueue(self.connection, jobs)
        job, other = (new.job_id for new in stored)
        assert (job, self.ids("Ready"), self.ids("Blocked")) == (None, [self.holder, other], [])
        assert self.rows("Job").count() == 2

    def test_several_of_one_key_are_repeated_as_a_whole(self) -> None:
        with self.deadlocks(2):
            self.enqueue(limited_job(to=2), limited_job(to=2, delay=timedelta(0)))
        assert (len(self.ids("Ready")), len(self.ids("Blocked"))) == (2, 1)
        assert self.rows("Job").count() == 3

    def test_in_the_callers_transaction_the_error_is_raised(self) -> None:
        with self.deadlocks(1), pytest.raises(DatabaseError), atomic(using=self.using):
            self.enqueue(limited_job(to=2))
        assert (self.tries, self.rows("Job").count()) == (1, 1)
