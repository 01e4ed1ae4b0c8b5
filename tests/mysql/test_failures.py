"""Errors of server and connection: told for what they are, and recovered from."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

from django.db import DatabaseError, DataError, IntegrityError, OperationalError
from django.db.transaction import atomic
from django.test import SimpleTestCase

from steady_queue_core.conformance.base import ending, new_job
from steady_queue_core.dialects import Ending, Outcome, QueueSelector
from steady_queue_mysql import batches, server
from steady_queue_mysql.claim import Claim
from steady_queue_mysql.errors import translated_errors
from steady_queue_mysql.transactions import Transaction

from ..waiters import waiters
from .cases import ServerCase, on_each_server


class Failures(ServerCase):
    def kill(self, connection_id: int) -> None:
        self.elsewhere(lambda: self.sql(f"KILL {connection_id}"))

    def test_a_connection_that_the_server_ended_is_lost(self) -> None:
        """Whatever was under way; and the next one does the work."""
        self.enqueue_many(4)
        worker = self.register()
        for operation in (
            lambda: self.enqueue_many(1),
            lambda: self.claim(1, process_id=worker),
            lambda: self.dialect.list_queues(self.connection),
            lambda: self.dialect.dispatch(self.connection, 1),
            lambda: self.rows("Job").count(),
        ):
            [(number,)] = self.sql("SELECT CONNECTION_ID()")
            self.kill(number)
            with self.assertRaises(DatabaseError) as raised:
                operation()
            error = raised.exception
            self.assertTrue(self.dialect.is_lost_connection(self.connection, error), repr(error))
            self.assertFalse(self.dialect.is_contention(self.connection, error), repr(error))
            self.connection.close()
            operation()

    def test_a_transaction_that_fails_leaves_the_connection_in_order(self) -> None:
        """Between the packets of a claim, and within one of an enqueue."""
        self.enqueue_many(3)
        worker = self.register()
        claims = self.claim(1, process_id=worker)
        broken: Any = None
        for operation in (
            lambda: self.enqueue(new_job(), new_job(arguments=broken)),
            lambda: self.settle(self.finished(claims[0], errors="x", started_at="no instant")),
        ):
            with self.assertRaises((DatabaseError, AttributeError)):
                operation()
            self.assertTrue(self.connection.get_autocommit())
            self.assertEqual(self.sql("SELECT @@autocommit"), [(1,)])
            self.assertEqual(len(self.elsewhere(lambda: self.free_rows())), 2)

    def free_rows(self) -> list[Any]:
        with atomic(using=self.using):
            return self.sql(
                "SELECT job_id FROM steady_queue_ready_executions FOR UPDATE SKIP LOCKED"
            )

    def test_values_that_no_column_takes_are_errors_of_data(self) -> None:
        """An error of operation would be tried again for ever."""
        broken: Any = None
        with self.assertRaises(DataError):
            self.enqueue(new_job("x" * 300))
        with self.assertRaises(IntegrityError):
            self.enqueue(new_job(arguments=broken))
        claim = self.claimed_job()
        with self.assertRaises(DataError):
            self.settle(self.failed(claim, exception_class="x" * 300))
        with self.assertRaises(DataError):
            self.settle(self.finished(claim, attempts=1 << 40))
        self.assertEqual(self.ids("Claimed"), [claim.job_id])

    def test_what_is_too_large_for_the_server_is_an_error_of_data(self) -> None:
        """Told before it is sent, so that the connection stays; others go through."""
        claim = self.claimed_job()
        known = server.server_of(self.connection)
        small = server.Server(known.text, known.version, known.is_mariadb, 1 << 20)
        wrapper: Any = self.connection
        wrapper.steady_queue_server = (wrapper.connection, small)
        [(number,)] = self.sql("SELECT CONNECTION_ID()")
        for text in ("x" * (1 << 20), "é" * (1 << 19), "'" * (1 << 19)):
            with self.assertRaisesRegex(DataError, "max_allowed_packet is 1048576"):
                self.enqueue(new_job(), new_job(arguments=text))
            with self.assertRaisesRegex(DataError, "max_allowed_packet is 1048576"):
                self.settle(self.finished(claim, return_value=text))
        self.assertEqual(self.sql("SELECT CONNECTION_ID()"), [(number,)])
        self.enqueue(*[new_job(arguments="x" * 900_000) for _ in range(3)])
        self.assertEqual(len(self.ids("Ready")), 3)

    def test_many_and_large_outcomes_are_settled_together(self) -> None:
        self.enqueue_many(450)
        claims = self.claim()
        random.shuffle(claims)
        kinds = [Ending.FINISHED, Ending.FAILED, Ending.RETRIED, Ending.RELEASED]
        outcomes = [
            Outcome(kinds[number % 4], claim.job_id, claim.token, claim.queue_name, claim.rank,
                    attempts=1, errors="é%s'\\;" * 1000, return_value="1", message="no")
            for number, claim in enumerate(claims)
        ]  # fmt: skip
        held = self.settle(*outcomes)
        self.assertEqual(held, {claim.job_id for claim in claims})
        self.assertEqual(self.job(claims[1].job_id).errors, "é%s'\\;" * 1000)
        self.assertEqual(len(self.ids("Failed")), 113 if len(outcomes) % 4 > 1 else 112)

    def test_packets_are_bounded_and_keep_the_order(self) -> None:
        statements = [batches.Statement(f"SELECT {n}, %s", ["x" * 200_000]) for n in range(9)]
        results = batches.execute_all(self.connection, statements)
        self.assertEqual([result.rows[0][0] for result in results], list(range(9)))

    def test_what_an_error_means_is_told_by_its_number(self) -> None:
        for number, contention, lost in (
            (1205, True, False), (1213, True, False), (3572, True, False), (1020, True, False),
            (3024, True, False), (1969, True, False),
            (2006, False, True), (2013, False, True), (2055, False, True), (1053, False, True),
            (1927, False, True), (1040, False, True), (1203, False, True), (1290, False, False),
            (1792, False, False), (1836, False, False), (1047, False, True), (4031, False, True),
            (1062, False, False), (1054, False, False), (1146, False, False), (1142, False, False),
        ):  # fmt: skip
            error = OperationalError(number, "")
            self.assertIs(self.dialect.is_contention(self.connection, error), contention, number)
            self.assertIs(self.dialect.is_lost_connection(self.connection, error), lost, number)

    def test_what_a_failed_commit_means_is_told_by_its_text(self) -> None:
        for text, contention, lost in (
            ("Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT", True, False),
            ("Got error 149 during COMMIT", True, False),
            ("Error while appending streaming replication fragment(provider status: Not connected "
             "to Primary Component)", False, True),
            ("Got error 28 - 'No space left on device' during COMMIT", False, False),
        ):  # fmt: skip
            error = OperationalError(1180, text)
            self.assertIs(self.dialect.is_contention(self.connection, error), contention, text)
            self.assertIs(self.dialect.is_lost_connection(self.connection, error), lost, text)

    def test_stray_ready_rows_end_where_they_are_claimed(self) -> None:
        """Of a job that is gone, has ended, or runs: and the others are claimed all the same."""
        gone, ended, running = self.enqueue_many(3)
        claims = {claim.job_id: claim for claim in self.claim()}
        self.settle(self.finished(claims[ended]), self.finished(claims[gone], preserve=False))
        for job_id in (gone, ended, running):
            self.sql("INSERT INTO steady_queue_ready_executions VALUES "
                     "(UTC_TIMESTAMP(6), %s, 'default', 0, 7, 0)", job_id)  # fmt: skip
        others = self.enqueue_many(2)
        self.assertEqual([claim.job_id for claim in self.claim()], others)
        self.assertEqual(self.ids("Ready"), [])
        self.assertEqual(self.settle(self.finished(claims[running])), {running})

    def test_a_job_that_somebody_has_locked_is_not_taken_for_a_stray(self) -> None:
        """Its ready row is free: the claim takes it, or leaves it; nobody loses it."""
        [job_id] = self.enqueue_many(1)
        worker = self.register()

        def lock() -> None:
            self.sql("SELECT id FROM steady_queue_jobs WHERE id = %s FOR UPDATE", job_id)

        with self.holding(lock):
            claiming = self.begin(lambda: self.claim(process_id=worker))
            self.wait_until(
                lambda: claiming.done() or waiters(self.connection) > 0, "the claim to get there"
            )
        claims = claiming.result(timeout=self.patience)
        self.assertEqual([claim.job_id for claim in claims], [job_id])

    def test_a_job_newer_than_the_callers_snapshot_is_not_taken_for_a_stray(self) -> None:
        worker = self.register()
        self.sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.addCleanup(self.connection.close)
        with atomic(using=self.using):
            self.assertEqual(self.rows("Job").count(), 0)
            [job_id] = self.elsewhere(lambda: self.enqueue_many(1))
            self.sql("SELECT count(*) FROM steady_queue_ready_executions FOR UPDATE")
            claiming = Claim(
                Transaction(self.connection), self.identity(worker), QueueSelector(), 5
            )
            self.assertEqual([claim.job_id for claim in claiming.run([])[1]], [job_id])

    def test_a_job_that_ran_since_the_snapshot_is_claimed_as_it_is_now(self) -> None:
        """The ready row is of now, for it is locked; what is told of the job has to be, too."""
        worker, other = self.register(), self.register()
        [job_id] = self.enqueue(new_job(max_attempts=3))
        self.sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.addCleanup(self.connection.close)

        def fail_once() -> None:
            [claim] = self.claim(process_id=other)
            self.settle(ending(Ending.RETRIED, claim, attempts=1, errors='[["E", "tb"]]'))

        with atomic(using=self.using):
            self.assertEqual(self.rows("Job").get().attempts, 0)
            self.elsewhere(fail_once)
            [claim] = self.claim(process_id=worker)
        self.assertEqual((claim.job_id, claim.attempts), (job_id, 1))
        self.assertEqual(claim.errors, '[["E", "tb"]]')


class TestClasses(SimpleTestCase):
    def test_drivers_that_differ_in_the_class_of_an_error_are_told_alike(self) -> None:
        for number, expected in (
            (1366, DataError), (1406, DataError), (1264, DataError), (1153, DataError),
            (1048, IntegrityError), (1062, IntegrityError), (4025, IntegrityError),
            (1213, OperationalError), (2006, OperationalError),
        ):  # fmt: skip
            with self.assertRaises(expected), translated_errors(mock.Mock()):
                raise OperationalError(number, "")


on_each_server(globals(), Failures)
