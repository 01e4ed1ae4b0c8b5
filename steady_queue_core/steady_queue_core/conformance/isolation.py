"""Nothing leaks between databases, threads or connections."""

from __future__ import annotations

import os
from datetime import timedelta

from django.db import connections
from django.db.transaction import atomic

from ..dialects.queue_selector import QueueSelector
from .base import ConformanceCase, limited_job, new_job
from .transactions import Refused


class IsolationCases(ConformanceCase):
    def test_every_operation_uses_the_connection_it_is_given(self) -> None:
        """Operations on a second alias are part of its transaction, not of another's."""
        worker = self.register()
        [job_id] = self.enqueue_many(1)
        self.one_operation_of_each_kind(worker)
        before = self.everything()
        # A dialect may keep what it knows of an alias: it is not to be another database's tomorrow.
        second = f"second_{self.using}"
        connections[second] = connection = self.connection.copy(second)
        self.addCleanup(connections.__delitem__, second)
        self.addCleanup(getattr(connection, "close_pool", connection.close))
        self.addCleanup(connection.close)
        with self.assertRaises(Refused), atomic(using=second):
            dialect = self.dialect
            dialect.enqueue(connection, [new_job("second"), new_job(delay=timedelta(hours=1))])
            self.assertEqual(dialect.list_queues(connection), ["default", "second"])
            claims = dialect.claim(connection, self.identity(worker), QueueSelector(), 10)
            self.assertEqual(len(claims), 2)
            dialect.settle(connection, [self.finished(claim) for claim in claims])
            dialect.dispatch(connection, 10)
            dialect.enqueue(connection, [limited_job(), limited_job()])
            self.assertEqual(dialect.admit(connection, ["key"]), 0)
            self.assertEqual(self.everything(), before)
            raise Refused
        self.assertEqual(self.everything(), before)
        self.assertEqual(self.ids("Ready"), [job_id])

    def one_operation_of_each_kind(self, worker: int) -> None:
        """Give a dialect that keeps its first connection the chance to do so."""
        self.dialect.list_queues(self.connection)
        self.claim(0, process_id=worker)
        self.settle()
        self.dialect.dispatch(self.connection, 10)
        self.dialect.admit(self.connection, ["key"])

    def test_threads_work_side_by_side_and_one_after_the_other(self) -> None:
        def work() -> list[str]:
            self.one_operation_of_each_kind(worker)
            return self.dialect.list_queues(self.connection)

        worker = self.register()
        self.enqueue_many(1)
        for listed in [work(), *self.in_threads([work] * 3), self.elsewhere(work)]:
            self.assertEqual(listed, ["default"])

    def test_a_connection_may_be_closed_between_any_two_operations(self) -> None:
        def work() -> None:
            worker = self.register()
            for _ in range(2):
                self.connection.close()
                self.enqueue_many(1)
                self.connection.close()
                [claim] = self.claim(process_id=worker)
                self.connection.close()
                self.assertEqual(self.settle(self.finished(claim)), {claim.job_id})
                self.connection.close()
                self.assertEqual(self.dialect.list_queues(self.connection), [])

        self.elsewhere(work)

    def test_a_thread_that_has_ended_leaves_nothing_open(self) -> None:
        def work() -> None:
            for claim in self.claim(process_id=worker):
                self.settle(self.finished(claim))

        worker = self.register()
        self.enqueue_many(1)
        self.elsewhere(work)
        before = open_descriptors()
        for _ in range(10):
            self.enqueue_many(1)
            self.elsewhere(work)
        self.assertLess(open_descriptors(), before + 5)


def open_descriptors() -> int:
    """Count the open file descriptors of this process, among the small numbers."""
    return sum(map(is_open, range(1024)))


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
