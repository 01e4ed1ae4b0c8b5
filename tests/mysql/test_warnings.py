"""With DEBUG, MySQL's own driver takes warnings for errors; and answers that are left unread."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

from django.db import DatabaseError
from django.db.transaction import atomic

from steady_queue_core.conformance.base import limited_job, new_job
from steady_queue_mysql import batches
from steady_queue_mysql.batches import Statement

from .cases import ServerCase, on_each_server

#: Which MySQL and MariaDB warn of, and answer all the same.
WARNED = Statement("SELECT CAST('no number' AS SIGNED)")


class Warnings(ServerCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.connection.close)
        self.enterContext(self.settings(DEBUG=True))
        self.connection.close()

    def test_jobs_with_limits_are_enqueued_and_let_in(self) -> None:
        """At once, many together, and when they are due: beside jobs that have none."""
        first, second = self.enqueue(limited_job(), limited_job())
        hour = timedelta(hours=1)
        later, plain = self.enqueue(limited_job("other", delay=hour), new_job(delay=hour))
        for job_id in (later, plain):
            self.make_due(job_id)
        self.assertEqual(self.dialect.dispatch(self.connection, 10).moved, 2)
        self.assertEqual(self.ids("Ready"), [first, later, plain])
        self.rows("Semaphore").all().delete()
        claims = {claim.job_id: claim for claim in self.claim()}
        self.settle(*map(self.finished, claims.values()))
        self.assertEqual(self.ids("Ready"), [second])
        self.check_permits()

    def test_a_warning_between_two_answers_loses_neither(self) -> None:
        """The driver would ask what it is about, and so skip what follows."""
        results = batches.execute_all(
            self.connection, [Statement("SELECT 'a'"), WARNED, Statement("SELECT 'b'")]
        )
        self.assertEqual([result.rows[0][0] for result in results], ["a", 0, "b"])
        self.assertEqual(self.sql("SELECT 'mine'"), [("mine",)])
        self.warned.clear()

    def test_the_project_is_warned_of_its_own_statements_as_before(self) -> None:
        batches.execute_all(self.connection, [Statement("SELECT 1")])
        wrapper: Any = self.connection
        if getattr(wrapper.connection, "raise_on_warnings", False):
            with self.assertRaises(DatabaseError):
                self.sql(WARNED.sql)
        else:
            self.sql(WARNED.sql)
        self.warned.clear()


class Interruption(Exception):
    """What may come at any moment, such as a task's time-out."""


class Interruptions(ServerCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.connection.close)

    def interrupted(self) -> Any:
        """Let the reading of answers end after the first of them."""
        results = [batches.Result([]), Interruption()]
        return mock.patch.object(batches, "Result", side_effect=results)

    def test_answers_that_nobody_has_read_are_not_taken_for_later_ones(self) -> None:
        [(number,)] = self.sql("SELECT CONNECTION_ID()")
        with self.interrupted(), self.assertRaises(Interruption):
            self.enqueue_many(3)
        self.assertNotEqual(self.sql("SELECT CONNECTION_ID()"), [(number,)])
        # Whether these were stored the server knew before we read on.
        stored = self.rows("Job").count()
        self.assertIn(stored, (0, 3))
        self.enqueue_many(2)
        self.assertEqual(len(self.claim()), stored + 2)

    def test_in_a_transaction_of_the_caller_nothing_is_stored(self) -> None:
        with self.assertRaises(Interruption), atomic(using=self.using):
            self.enqueue_many(1)
            with self.interrupted():
                self.enqueue_many(3)
        self.assertEqual(self.rows("Job").count(), 0)

    def test_what_the_server_refuses_leaves_the_connection_as_it_is(self) -> None:
        """Its error is the last answer: the caller's transaction goes on after a savepoint."""
        with atomic(using=self.using):
            [first] = self.enqueue_many(1)
            for operation in (
                lambda: self.enqueue(new_job(), new_job("x" * 300)),
                lambda: batches.execute_all(
                    self.connection,
                    [Statement("SELECT 1"), Statement("SELECT nothing"), Statement("SELECT 2")],
                ),
            ):
                with self.assertRaises(DatabaseError), atomic(using=self.using):
                    operation()
            [second] = self.enqueue_many(1)
        self.assertEqual(self.ids("Ready"), [first, second])


on_each_server(globals(), Warnings)
on_each_server(globals(), Interruptions)
