"""Transactions of the queue."""

from __future__ import annotations

from django.db.transaction import atomic, on_commit

from .base import ConformanceCase, new_job


class Refused(Exception):
    """Raised by a case to end a transaction."""


class TransactionCases(ConformanceCase):
    def test_a_transaction_commits_at_its_end(self) -> None:
        with self.dialect.transaction(self.connection):
            self.enqueue(new_job())
            self.assertEqual(self.elsewhere(self.rows("Job").count), 0)
        self.assertEqual(self.elsewhere(self.rows("Job").count), 1)

    def test_a_transaction_rolls_back_on_an_error_and_raises_it(self) -> None:
        error = Refused()
        with self.assertRaises(Refused) as raised, self.dialect.transaction(self.connection):
            self.enqueue(new_job())
            raise error
        self.assertIs(raised.exception, error)
        self.assertEqual(self.rows("Job").count(), 0)

    def test_a_transaction_leaves_autocommit_as_it_was(self) -> None:
        for fails in (False, True):
            try:
                with self.dialect.transaction(self.connection):
                    if fails:
                        raise Refused
            except Refused:
                pass
            self.assertFalse(self.connection.in_atomic_block)
            self.assertTrue(self.connection.get_autocommit())

    def test_a_transaction_joins_the_callers(self) -> None:
        """The caller's rollback undoes everything done inside."""
        with self.assertRaises(Refused), atomic(using=self.using):
            with self.dialect.transaction(self.connection):
                self.enqueue(new_job())
            self.assertTrue(self.connection.in_atomic_block)
            raise Refused
        self.assertEqual(self.rows("Job").count(), 0)

    def test_transactions_nest(self) -> None:
        with self.dialect.transaction(self.connection):
            with self.dialect.transaction(self.connection):
                self.enqueue(new_job())
            self.enqueue(new_job())
        self.assertEqual(self.rows("Job").count(), 2)

    def test_work_for_after_the_commit_waits_for_it(self) -> None:
        done: list[str] = []
        with self.dialect.transaction(self.connection):
            on_commit(lambda: done.append("committed"), using=self.using)
            self.assertEqual(done, [])
        self.assertEqual(done, ["committed"])

    def test_work_for_after_the_commit_is_dropped_by_a_rollback(self) -> None:
        done: list[str] = []
        with self.assertRaises(Refused), self.dialect.transaction(self.connection):
            on_commit(lambda: done.append("committed"), using=self.using)
            raise Refused
        self.assertEqual(done, [])

    def test_reading_and_then_writing_is_safe_in_any_number_of_threads(self) -> None:
        """Transactions begin in a mode that makes this safe: none fails, nothing is lost."""

        def add_one() -> None:
            with self.dialect.transaction(self.connection):
                rows = self.rows("Semaphore").filter(pk="counter")
                counter = self.dialect.lock_rows(self.connection, rows, wait=True).get()
                rows.update(value=counter.value + 1)

        def add_five() -> None:
            for _ in range(5):
                add_one()

        self.rows("Semaphore").create(key="counter", value=0, limit=30)
        self.in_threads([add_five] * 6)
        self.assertEqual(self.rows("Semaphore").get(pk="counter").value, 30)
