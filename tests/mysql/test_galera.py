"""A node of Galera aborts transactions between statements, and changes the step of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from unittest import mock

from django.db import DatabaseError
from django.db.transaction import TransactionManagementError, atomic
from django.test import SimpleTestCase, TransactionTestCase

from steady_queue_core.conformance.atomicity import AtomicityCases
from steady_queue_core.conformance.faults import Fault
from steady_queue_core.conformance.inspection import STATES
from steady_queue_core.conformance.interrupted import InterruptedCase
from steady_queue_core.dialects import Arrival, CheckpointChange
from steady_queue_core.dialects import batches as core_batches
from steady_queue_core.progress import Progress
from steady_queue_mysql import batches, enqueue, server
from steady_queue_mysql.batches import Statement
from steady_queue_mysql.errors import StepChanged
from steady_queue_mysql.server import server_of

from .cases import ServerCase
from .played_galera import Abort, AbortOfPing, NewStep, played_galera

T = TypeVar("T")

#: Tells the step as it is after the INSERT, as if it could not change.
LATE = Statement(
    "SELECT LAST_INSERT_ID(), @@auto_increment_increment, @@auto_increment_increment, "
    "CAST(@steady_queue_now AS DATETIME(6))"
)


class GaleraCase(InterruptedCase, ServerCase):
    using = "mariadb"
    databases = {"mariadb"}

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(played_galera(self.connection))
        server_of(self.connection)  # Drivers differ in the statements that open a connection.

    def abort(self, before: int) -> Fault:
        return Abort(self.connection, before)

    def disturb(self, before: int) -> Fault:
        return NewStep(self.connection, before)

    def abort_ping(self, before: int) -> Fault:
        return AbortOfPing(self.connection, before)

    def again(self, operation: Callable[[], T]) -> T:
        """This dialect's operations repeat their own transactions."""
        return super().again(operation) if self.joins else operation()

    def enqueue_plain(self) -> None:
        before = self.ids("Ready")
        new = self.whole(lambda: self.enqueue_many(3))
        self.assertEqual(self.ids("Ready"), before + new)

    def forget(self) -> None:
        """Delete what a fault has broken."""
        for state in STATES:
            self.rows(f"{state}Execution").delete()
        self.rows("Permit").delete()
        self.rows("Job").delete()


class TestAtomicity(AtomicityCases, GaleraCase, TransactionTestCase):
    """The cases of the conformance suite, with the faults of Galera."""

    def test_a_fault_in_a_packet_would_be_lost(self) -> None:
        """So the case notices it."""
        with (
            mock.patch.object(batches, "_max_length", lambda server: batches.MAX_LENGTH),
            self.assertRaises((AssertionError, DatabaseError)),
        ):
            self.test_a_job_lives_once_wherever_its_transactions_are_aborted()
        self.forget()

    def test_a_step_that_is_read_late_would_be_wrong(self) -> None:
        """So the case notices it."""
        with mock.patch.object(enqueue, "FIRST_ID", LATE), self.assertRaises(AssertionError):
            self.test_jobs_of_one_call_keep_their_ids_whatever_comes_between()
        self.forget()


class TestAborts(GaleraCase, TransactionTestCase):
    """What is done to jobs is done once, wherever a transaction is aborted."""

    def test_what_an_attempt_stores_is_stored(self) -> None:
        claim = self.claimed_job()
        change = CheckpointChange(claim.job_id, claim.token, "1", Progress(1, 2))

        def save() -> None:
            self.rows("Checkpoint").delete()
            self.whole(lambda: self.dialect.save_checkpoint(self.connection, change))
            self.assertEqual(self.rows("Checkpoint").count(), 1)

        self.assertGreater(self.everywhere(self.abort, save), 1)

    def test_many_jobs_are_enqueued_once(self) -> None:
        """In several statements of one transaction, which is begun by the core."""
        with mock.patch.object(core_batches, "MOST_JOBS", 2):
            self.assertGreater(self.everywhere(self.abort, self.enqueue_of_each_kind), 12)

    def test_an_abort_that_answers_a_ping_is_one_too(self) -> None:
        self.assertGreater(self.everywhere(self.abort_ping, self.enqueue_of_each_kind), 8)

    def test_a_turn_is_taken_once(self) -> None:
        [job_id] = self.enqueue_many(1)
        arrival = Arrival(job_id, "default", 0, "key", 1.0)

        def take() -> None:
            self.rows("Turn").delete()
            self.whole(lambda: self.dialect.take_turn(self.connection, arrival))
            self.assertEqual(self.rows("Turn").count(), 1)

        self.assertGreater(self.everywhere(self.abort, take), 1)

    def test_a_statement_is_a_packet(self) -> None:
        """Each one can be aborted by itself."""
        self.worker, self.fault = self.register(), self.abort(10_000)
        self.live()
        self.assertGreater(10_000 - self.fault.left, 40)


class TestAbortsOfTheCallersTransaction(TestAborts):
    """The error is raised, and the caller repeats the whole."""

    joins = True


class TestSteps(GaleraCase, TransactionTestCase):
    """The ids of jobs are known, whenever their step changes."""

    def test_jobs_of_one_call_get_their_rows(self) -> None:
        self.assertGreater(self.everywhere(self.disturb, self.enqueue_of_each_kind), 8)
        self.assertGreater(self.everywhere(self.disturb, self.enqueue_plain), 4)

    def test_in_the_callers_transaction_the_error_is_raised(self) -> None:
        with (
            NewStep(self.connection, 2).played(),
            self.assertRaisesRegex(StepChanged, "changed from 1 to 2") as raised,
            atomic(using=self.using),
        ):
            self.enqueue_many(3)
        self.assertTrue(self.dialect.is_contention(self.connection, raised.exception))
        self.assertEqual(self.rows("Job").count(), 0)

    def test_the_callers_transaction_cannot_be_committed_after_it(self) -> None:
        with NewStep(self.connection, 2).played(), atomic(using=self.using):
            with self.assertRaises(StepChanged):
                self.enqueue_many(3)
            with self.assertRaises(TransactionManagementError):
                self.enqueue_many(1)
        self.assertEqual(self.rows("Job").count(), 0)

    def test_one_job_needs_no_step(self) -> None:
        with NewStep(self.connection, 2).played(), atomic(using=self.using):
            [job_id] = self.enqueue_many(1)
        self.assertEqual(self.ids("Ready"), [job_id])


class TestNodes(SimpleTestCase):
    def test_a_node_is_known_by_its_variable_or_by_its_build(self) -> None:
        for text, comment, wsrep_on, is_galera in (
            ("10.11.18-MariaDB", "Debian 12", 0, False),
            ("10.11.18-MariaDB", "Debian 12", 1, True),
            ("10.11.18-MariaDB", "wsrep_25.9", 0, False),
            ("9.7.4", "MySQL Community Server - GPL", None, False),
            ("8.4.3-3.1", "Percona XtraDB Cluster (GPL), WSREP version 26.1.4.3", None, True),
        ):
            found = server.parse(text, 1, comment, wsrep_on)
            self.assertEqual(found.is_galera, is_galera, comment)


class TestBuildsWithoutGalera(ServerCase, TransactionTestCase):
    using = "mariadb"
    databases = {"mariadb"}

    def test_a_server_that_does_not_know_the_variable_is_asked_again(self) -> None:
        asked = server.ASK.replace("wsrep_on", "wsrep_unknown")
        with mock.patch.object(server, "ASK", asked):
            self.connection.close()
            self.assertEqual(len(self.enqueue_many(1)), 1)
            self.assertFalse(server.server_of(self.connection).is_galera)
        self.connection.close()
