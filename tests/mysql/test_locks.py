"""What operations lock: the rows that they take, and nothing that others need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import count, product
from threading import Event
from typing import Any
from unittest import mock

from django.db.transaction import atomic

from steady_queue_core.conformance.base import limited_job, new_job
from steady_queue_core.dialects import QueueSelector
from steady_queue_mysql.batches import Statement
from steady_queue_mysql.claim import Claim
from steady_queue_mysql.semaphores import counting
from steady_queue_mysql.transactions import READ_COMMITTED, Transaction

from ..dialects.kept_semaphores import LATE, KeptSemaphores, fair_job
from .cases import ServerCase, on_each_server


class Locks(KeptSemaphores, ServerCase):
    # Their REPEATABLE READ would lock the gaps beside what they insert.
    options_of_others = {"isolation_level": "read committed"}
    impatience = (
        "SET SESSION innodb_lock_wait_timeout = 1", "SET SESSION innodb_lock_wait_timeout = DEFAULT"
    )  # fmt: skip

    def free(self, table: str) -> int:
        """Count the rows that nobody has locked."""
        with atomic(using=self.using):
            rows = self.sql(f"SELECT job_id FROM {table} FOR UPDATE SKIP LOCKED")
            return len(rows)

    @contextmanager
    def claiming(self, limit: int, *patterns: str) -> Iterator[list[int]]:
        """Stop another worker's claim just before its commit."""
        taken: list[int] = []
        reached, go_on = Event(), Event()
        worker = self.register()

        def work() -> None:
            transaction = Transaction(self.connection)
            execute = transaction.execute

            def ask_and_wait(statements: Any, *, last: bool = False) -> Any:
                results = execute(statements)
                if last:
                    reached.set()
                    go_on.wait(self.patience)
                    execute([], last=True)
                return results

            # Only this one object is slow.
            transaction.execute = ask_and_wait  # type: ignore[method-assign]
            selector = QueueSelector(patterns=patterns or ("*",))
            claims = Claim(transaction, self.identity(worker), selector, limit).run([])[1]
            taken.extend(claim.job_id for claim in claims)

        begun = self.begin(work)
        try:
            self.assertTrue(reached.wait(self.patience))
            yield taken
        finally:
            go_on.set()
            begun.result(timeout=self.patience)

    def test_a_claim_locks_the_rows_that_it_takes(self) -> None:
        self.enqueue_many(100)
        for patterns in ((), ("default",), ("def*",), ("other", "default", "third")):
            with self.claiming(5, *patterns):
                self.assertEqual(self.free("steady_queue_ready_executions"), 95, patterns)
            self.enqueue_many(5)

    def test_a_claim_beside_a_paused_queue_locks_the_rows_that_it_takes(self) -> None:
        self.enqueue_many(50, "paused")
        self.enqueue_many(50)
        self.pause("paused")
        with self.claiming(5):
            self.assertEqual(self.free("steady_queue_ready_executions"), 95)

    def test_a_claim_keeps_nobody_from_enqueueing_pausing_and_beating(self) -> None:
        self.enqueue_many(10)
        self.pause("other")
        process_id = self.register()
        self.sql("SET SESSION innodb_lock_wait_timeout = 1")
        try:
            for patterns in ((), ("default",)):
                with self.claiming(5, *patterns):
                    self.enqueue(new_job(), new_job(rank=-100), new_job("aaa"))
                    self.pause("one", "zzz")
                    self.rows("Pause").all().delete()
                    self.rows("Process").filter(pk=process_id).update(pid=2)
                    self.rows("Process").update(pid=3)
        finally:
            self.sql("SET SESSION innodb_lock_wait_timeout = DEFAULT")

    def test_a_job_that_is_kept_locked_holds_up_the_claim_of_no_other(self) -> None:
        kept, *others = self.enqueue_many(3)
        self.be_impatient()
        lock = f"SELECT 1 FROM steady_queue_jobs WHERE id = {kept} FOR UPDATE"
        with self.holding(lambda: self.execute(lock)):
            claimed = [claim.job_id for claim in self.claim()]
            self.assertLessEqual({*others}, {*claimed})
        claimed += [claim.job_id for claim in self.claim()]
        self.assertEqual(sorted(claimed), [kept, *others])

    def test_a_second_dispatcher_gets_jobs_while_a_first_holds_its_own(self) -> None:
        hour = timedelta(hours=1)
        ids = self.enqueue(*[new_job(delay=hour) for _ in range(20)])
        later = self.enqueue(new_job(delay=hour))
        for job_id in ids:
            self.make_due(job_id)

        def dispatch() -> int:
            return self.dialect.dispatch(self.connection, 5).moved

        self.sql("SET SESSION innodb_lock_wait_timeout = 1")
        self.addCleanup(self.connection.close)
        with self.holding(dispatch):
            self.assertEqual(self.free("steady_queue_scheduled_executions"), 16)
            self.assertEqual(dispatch(), 5)
        self.assertEqual(self.ids("Scheduled"), sorted(set(ids) - set(self.ids("Ready"))) + later)

    def test_the_queues_own_transactions_are_read_committed(self) -> None:
        """And only they: what the project's transactions are, they stay."""
        self.sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        wrapper: Any = self.connection
        known, wrapper.isolation_level = wrapper.isolation_level, None
        try:
            self.assertTrue(self.sees_later_commits(partial(self.dialect.transaction, wrapper)))
            self.assertFalse(self.sees_later_commits(partial(atomic, using=self.using)))
            self.enqueue_many(1)
            self.claim()
            self.assertFalse(self.sees_later_commits(partial(atomic, using=self.using)))
        finally:
            wrapper.isolation_level = known
            self.connection.close()

    def sees_later_commits(self, transaction: Callable[[], Any]) -> bool:
        with transaction():
            before = self.rows("Job").count()
            self.elsewhere(lambda: self.enqueue_many(1))
            return bool(self.rows("Job").count() > before)

    def test_a_claim_is_read_committed(self) -> None:
        transaction = Transaction(self.connection)
        self.sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        count = Statement("SELECT count(*) FROM steady_queue_jobs")
        try:
            before = transaction.execute([count])[0].rows[0][0]
            self.elsewhere(lambda: self.enqueue_many(1))
            self.assertEqual(
                transaction.execute([count])[0].rows[0][0], before + 1, READ_COMMITTED.sql
            )
        finally:
            transaction.rollback()
            self.connection.close()

    def test_a_caller_that_enqueues_locks_only_its_own_keys(self) -> None:
        """Whatever the isolation of its transaction: none of the gaps beside them."""
        self.sql("SET SESSION innodb_lock_wait_timeout = 1")
        self.addCleanup(self.connection.close)
        self.enqueue(*[limited_job(key) for key in "dg"])
        self.settle(*[self.finished(claim) for claim in self.claim()])
        for level in ("read committed", "repeatable read"):
            with self.connected_with(level):
                ours, theirs = [limited_job(key) for key in "bdf"], [*"aceg"]
                with self.holding(lambda jobs=ours: self.enqueue(*jobs)):
                    self.enqueue(*[limited_job(key) for key in theirs])
                    self.elsewhere(lambda: self.settle(*map(self.finished, self.claim())))

    def test_a_caller_that_enqueues_locks_only_its_own_fair_keys(self) -> None:
        """Whether they are new or not, and however many: none of the gaps beside them."""
        self.have_fair_queue()
        self.be_impatient()
        new = count()
        levels, known = ("read committed", "repeatable read"), (False, True)
        for number, (level, are_known, ours) in enumerate(product(levels, known, ("d", "dg"))):
            # Others each time: a key that was rolled back is in the index until it is purged, and
            # whoever inserts it again locks the gap beside it.
            jobs = [fair_job(f"{number}{ours}{key}") for key in ours]
            if are_known:
                self.enqueue(*jobs)
            with (
                self.connected_with(level),
                self.holding(lambda jobs=jobs: self.enqueue(*jobs)),
            ):
                beside = [job.fair_key + text for job in jobs for text in ("", "!")]
                theirs = [fair_job(f"{key[:-1]}{next(new)}") for key in beside]
                theirs += [fair_job(f"{key}{next(new)}") for key in beside]
                for job in theirs:
                    self.enqueue(job)
                self.enqueue(*theirs, *[fair_job(f"{job.fair_key}+") for job in theirs])
                with self.never_waiting():
                    self.due(*[fair_job(f"{job.fair_key}-", delay=LATE) for job in theirs])
                    self.assertEqual(self.dialect.dispatch(self.connection, 99).moved, len(theirs))

    def test_callers_with_other_keys_do_not_deadlock(self) -> None:
        def enqueue() -> None:
            with atomic(using=self.using):
                self.enqueue(*[limited_job(key) for key in "bdf"])

        jobs = [limited_job(key) for key in "ace"]
        with self.connected_with("repeatable read"), self.holding(lambda: self.enqueue(*jobs)):
            self.begin(enqueue).result(timeout=5)

    @contextmanager
    def connected_with(self, level: str) -> Iterator[None]:
        options = self.connection.settings_dict["OPTIONS"]
        with mock.patch.dict(options, isolation_level=level):
            yield

    def test_a_count_of_permits_reads_the_keys_alone(self) -> None:
        self.sql(
            "INSERT INTO steady_queue_permits (job_id, `key`) WITH RECURSIVE n AS ("
            "SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
            "SELECT 1000000 + i, CONCAT('k', i % 7) FROM n"
        )
        self.addCleanup(self.sql, "DELETE FROM steady_queue_permits")
        self.sql("ANALYZE TABLE steady_queue_permits")
        keys = [f"k{number}" for number in range(600)]
        statement = counting(keys)
        counted = dict(self.sql(statement.sql, *statement.values))
        self.assertEqual(list(counted), sorted(keys))
        self.assertEqual(sum(counted.values()), 900)


on_each_server(globals(), Locks)
