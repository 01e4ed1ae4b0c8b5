"""Deadlocks are won by trying again, where the transaction is the queue's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread
from typing import Any
from unittest import mock

from django.db import DatabaseError, connections
from django.db.transaction import TransactionManagementError, atomic
from django.db.utils import DatabaseErrorWrapper

from steady_queue_core.conformance.base import new_job
from steady_queue_core.dialects import Arrival
from steady_queue_mysql.errors import ABORTED, error_number

from ..waiters import waiters
from .cases import ServerCase, on_each_server

LOCK_CLAIM = "SELECT job_id FROM steady_queue_claimed_executions WHERE job_id = %s FOR UPDATE"


@contextmanager
def deadlocks() -> Iterator[list[BaseException]]:
    """Give the deadlocks that sessions of this process are told of, once or twice each."""
    found: list[BaseException] = []
    leave = DatabaseErrorWrapper.__exit__

    def leave_watched(self: Any, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and error_number(error) == ABORTED:
            found.append(error)
        leave(self, kind, error, trace)

    with mock.patch.object(DatabaseErrorWrapper, "__exit__", leave_watched):
        yield found


class Deadlocks(ServerCase):
    def rival(self, first: int, second: int) -> tuple[Event, Event, Thread]:
        """Lock two claims in the wrong order, the second when asked to, with much to lose."""
        ready, go_on = Event(), Event()

        def work() -> None:
            try:
                with atomic(using=self.using):
                    # The server ends the transaction that has changed less.
                    self.sql("UPDATE steady_queue_processes SET pid = pid + 1")
                    self.sql(LOCK_CLAIM, second)
                    ready.set()
                    go_on.wait(self.patience)
                    self.sql(LOCK_CLAIM, first)
            finally:
                ready.set()
                connections.close_all()

        thread = Thread(target=work, daemon=True)
        thread.start()
        self.assertTrue(ready.wait(self.patience))
        return ready, go_on, thread

    def wait_for_a_waiter(self) -> None:
        self.wait_until(lambda: waiters(self.connection) > 0, "a transaction that waits")

    def settle_against(self, settle: Any) -> Any:
        for _ in range(50):
            self.register()
        self.enqueue_many(2)
        first, second = self.claim()
        _, go_on, rival = self.rival(first.job_id, second.job_id)
        settling = self.begin(lambda: settle(self.finished(first), self.finished(second)))
        self.wait_for_a_waiter()
        go_on.set()
        rival.join(self.patience)
        return settling, {first.job_id, second.job_id}

    def test_a_settlement_that_loses_a_deadlock_is_tried_again(self) -> None:
        with deadlocks() as met:
            settling, both = self.settle_against(self.settle)
            self.assertEqual(settling.result(timeout=self.patience), both)
        self.assertTrue(met)

    def test_within_the_callers_transaction_it_is_raised(self) -> None:
        def settle(*outcomes: Any) -> set[int]:
            with atomic(using=self.using):
                return self.settle(*outcomes)

        settling, _ = self.settle_against(settle)
        error = settling.exception(timeout=self.patience)
        self.assertIsInstance(error, DatabaseError)
        self.assertTrue(self.dialect.is_contention(self.connection, error), repr(error))
        self.assertEqual(len(self.ids("Claimed")), 2)

    def test_who_catches_it_commits_nothing_of_the_transaction(self) -> None:
        """The server has undone all of it, also what came before, and tells only the queue."""

        def settle(*outcomes: Any) -> None:
            with atomic(using=self.using):
                self.enqueue(new_job())
                with suppress(DatabaseError):
                    self.settle(*outcomes)
                self.enqueue(new_job())

        settling, _ = self.settle_against(settle)
        error = settling.exception(timeout=self.patience)
        self.assertIsInstance(error, TransactionManagementError)
        self.assertEqual((len(self.ids("Claimed")), self.ids("Ready")), (2, []))

    def test_who_catches_a_lock_time_out_commits_nothing_of_the_transaction(self) -> None:
        """The server has undone one of several statements: the job would be there."""
        [job] = self.enqueue(new_job())
        arrival = Arrival(job, "default", 0, "key", 1.0)
        self.dialect.take_turn(self.connection, arrival)

        def enqueue() -> None:
            self.sql("SET SESSION innodb_lock_wait_timeout = 1")
            with atomic(using=self.using):
                [late] = self.enqueue(new_job())
                with suppress(DatabaseError):
                    self.dialect.take_turn(self.connection, arrival._replace(job_id=late))

        with self.holding(lambda: self.sql("SELECT 1 FROM steady_queue_turns FOR UPDATE")):
            self.begin(enqueue).result(timeout=self.patience)
        self.assertEqual(self.ids("Ready"), [job])

    def test_enqueueing_and_claiming_on_a_short_queue_never_deadlocks(self) -> None:
        """Six threads for a while: IN (...) in the place of the joins made hundreds on MariaDB."""
        met = self.enterContext(deadlocks())
        workers = [self.register() for _ in range(3)]

        def enqueue() -> None:
            for _ in range(60):
                self.enqueue(new_job(), new_job(delay=timedelta(0)))

        def work(process_id: int) -> int:
            done = 0
            for _ in self.until_deadline():
                claims = self.claim(5, process_id=process_id)
                done += len(self.settle(*map(self.finished, claims)))
                if not claims and enqueued.is_set() and not self.ids("Ready"):
                    return done
            return done

        enqueued = Event()
        begun = [self.begin(lambda worker=worker: work(worker)) for worker in workers]
        self.in_threads([enqueue] * 3)
        enqueued.set()
        self.assertEqual(sum(future.result(timeout=self.patience) for future in begun), 360)
        self.assertEqual(met, [])


on_each_server(globals(), Deadlocks)
