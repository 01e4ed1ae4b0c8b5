"""A node of Galera aborts transactions between statements, and changes the step of ids."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar
from unittest import mock

from django.db import DatabaseError
from django.db.transaction import TransactionManagementError, atomic
from django.test import SimpleTestCase, TransactionTestCase

from steady_queue_core.dialects import Arrival, CheckpointChange, QueueSelector
from steady_queue_core.dialects import batches as core_batches
from steady_queue_core.dialects.conformance.base import STATES, limited_job, new_job
from steady_queue_core.progress import Progress
from steady_queue_mysql import batches, enqueue, server
from steady_queue_mysql.batches import Statement
from steady_queue_mysql.errors import StepChanged
from steady_queue_mysql.server import server_of

from .cases import ServerCase
from .played_galera import Abort, AbortOfPing, Steps, played_galera

T = TypeVar("T")

#: Tells the step as it is after the INSERT, as if it could not change.
LATE = Statement(
    "SELECT LAST_INSERT_ID(), @@auto_increment_increment, @@auto_increment_increment, "
    "CAST(@steady_queue_now AS DATETIME(6))"
)


class GaleraCase(ServerCase, TransactionTestCase):
    using = "mariadb"
    databases = {"mariadb"}

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(played_galera(self.connection))
        server_of(self.connection)  # Drivers differ in the statements that open a connection.

    def everywhere(self, fault: type[Abort] | type[Steps], operation: Callable[[], Any]) -> int:
        """Repeat ``operation`` with a fault behind its first statement, its second, and so on;
        return how many it has."""
        self.worker = self.register()
        for behind in count():
            self.fault = fault(self.connection, behind)
            operation()
            self.check_states()
            self.check_permits()
            if not self.fault.is_done:
                return behind
        raise AssertionError("unreachable")

    def whole(self, operation: Callable[[], T]) -> T:
        """Run ``operation`` with the fault in it: it repeats its transaction by itself."""
        with self.fault.played():
            return operation()

    def forget(self) -> None:
        """Delete what a fault has broken."""
        for state in STATES:
            self.rows(f"{state}Execution").delete()
        self.rows("Permit").delete()
        self.rows("Job").delete()

    def enqueue_of_each_kind(self) -> list[int]:
        hour = timedelta(hours=1)
        jobs = [new_job(), new_job(), limited_job(to=2), limited_job(to=2), new_job(delay=hour)]
        before = self.rows("Job").count()
        ids = self.whole(lambda: self.enqueue(*jobs))
        self.assertEqual(self.rows("Job").count(), before + len(jobs))
        self.assertEqual(self.ids("Scheduled")[-1], ids[-1])
        return ids

    def enqueue_plain(self) -> None:
        before = self.ids("Ready")
        new = self.whole(lambda: self.enqueue_many(3))
        self.assertEqual(self.ids("Ready"), before + new)

    def life(self) -> None:
        """Enqueue jobs, make them due, claim and settle them: each is claimed once."""
        *_, later = self.enqueue_of_each_kind()
        self.make_due(later)
        self.whole(lambda: self.dialect.dispatch(self.connection, 10))
        self.assertEqual(self.ids("Scheduled"), [])
        process, selector = self.identity(self.worker), QueueSelector()
        claims = self.whole(lambda: self.claim(2, process_id=self.worker))
        claimed = [claim.job_id for claim in claims]
        while claims:
            outcomes = [self.finished(claim) for claim in claims]
            both = partial(
                self.dialect.settle_and_claim, self.connection, outcomes, process, selector, 2
            )
            held, claims = self.whole(both)
            self.assertEqual(held, {outcome.job_id for outcome in outcomes})
            claimed += [claim.job_id for claim in claims]
        self.assertEqual(len(claimed), 5)
        self.assertEqual(len(set(claimed)), 5)
        self.assertEqual(self.ids("Claimed"), [])


class TestAborts(GaleraCase):
    """What is done to jobs is done once, wherever a transaction is aborted."""

    def test_a_job_lives_once(self) -> None:
        self.assertGreater(self.everywhere(Abort, self.life), 40)

    def test_what_an_attempt_stores_is_stored(self) -> None:
        claim = self.claimed_job()
        change = CheckpointChange(claim.job_id, claim.token, "1", Progress(1, 2))

        def save() -> None:
            self.rows("Checkpoint").delete()
            self.whole(lambda: self.dialect.save_checkpoint(self.connection, change))
            self.assertEqual(self.rows("Checkpoint").count(), 1)

        self.assertGreater(self.everywhere(Abort, save), 1)

    def test_many_jobs_are_enqueued_once(self) -> None:
        """In several statements of one transaction, which is begun by the core."""
        with mock.patch.object(core_batches, "MOST_JOBS", 2):
            self.assertGreater(self.everywhere(Abort, self.enqueue_of_each_kind), 12)

    def test_an_abort_that_answers_a_ping_is_one_too(self) -> None:
        self.assertGreater(self.everywhere(AbortOfPing, self.enqueue_of_each_kind), 8)

    def test_a_turn_is_taken_once(self) -> None:
        [job_id] = self.enqueue_many(1)
        arrival = Arrival(job_id, "default", 0, "key", 1.0)

        def take() -> None:
            self.rows("Turn").delete()
            self.whole(lambda: self.dialect.take_turn(self.connection, arrival))
            self.assertEqual(self.rows("Turn").count(), 1)

        self.assertGreater(self.everywhere(Abort, take), 1)

    def test_a_fault_in_a_packet_would_be_lost(self) -> None:
        """So the cases above notice it."""
        with (
            mock.patch.object(batches, "_max_length", lambda server: batches.MAX_LENGTH),
            self.assertRaises((AssertionError, DatabaseError)),
        ):
            self.everywhere(Abort, self.life)
        self.forget()


class TestAbortsOfTheCallersTransaction(TestAborts):
    """The error is raised, and the caller repeats the whole."""

    def whole(self, operation: Callable[[], T]) -> T:
        def joined() -> T:
            with atomic(using=self.using):
                return operation()

        with self.fault.played():
            return self.again(joined)


class TestSteps(GaleraCase):
    """The ids of jobs are known, whenever their step changes."""

    def test_jobs_of_one_call_get_their_rows(self) -> None:
        self.assertGreater(self.everywhere(Steps, self.enqueue_of_each_kind), 8)
        self.assertGreater(self.everywhere(Steps, self.enqueue_plain), 4)

    def test_in_the_callers_transaction_the_error_is_raised(self) -> None:
        with (
            Steps(self.connection, 1).played(),
            self.assertRaisesRegex(StepChanged, "changed from 1 to 2") as raised,
            atomic(using=self.using),
        ):
            self.enqueue_many(3)
        self.assertTrue(self.dialect.is_contention(self.connection, raised.exception))
        self.assertEqual(self.rows("Job").count(), 0)

    def test_the_callers_transaction_cannot_be_committed_after_it(self) -> None:
        with Steps(self.connection, 1).played(), atomic(using=self.using):
            with self.assertRaises(StepChanged):
                self.enqueue_many(3)
            with self.assertRaises(TransactionManagementError):
                self.enqueue_many(1)
        self.assertEqual(self.rows("Job").count(), 0)

    def test_one_job_needs_no_step(self) -> None:
        with Steps(self.connection, 1).played(), atomic(using=self.using):
            [job_id] = self.enqueue_many(1)
        self.assertEqual(self.ids("Ready"), [job_id])

    def test_a_step_that_is_read_late_would_be_wrong(self) -> None:
        """So the cases above notice it."""
        with mock.patch.object(enqueue, "FIRST_ID", LATE), self.assertRaises(AssertionError):
            self.everywhere(Steps, self.enqueue_of_each_kind)
        self.forget()


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
