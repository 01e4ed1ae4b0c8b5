"""Row locks."""

from __future__ import annotations

from typing import Any

from django.db.transaction import atomic

from .base import ConformanceCase


class LockingCases(ConformanceCase):
    def locked(self, rows: Any, *, wait: bool) -> list[int]:
        """Return the ids of ``rows``, read with the lock."""
        return [row.pk for row in self.dialect.lock_rows(self.connection, rows, wait=wait)]

    def test_locked_rows_keep_filter_order_and_limit(self) -> None:
        first, second, third, _ = self.enqueue_many(4)
        rows = self.rows("ReadyExecution").filter(pk__lte=third).order_by("-job_id")[:2]
        for wait in (True, False):
            with self.dialect.transaction(self.connection):
                self.assertEqual(self.locked(rows, wait=wait), [third, second])
        self.assertEqual(first, self.ids("Ready")[0])

    def test_a_writer_waits_for_locked_rows(self) -> None:
        """A second transaction that reads the rows sees the changes of the first."""
        [job_id] = self.enqueue_many(1)
        rows = self.rows("ReadyExecution")

        def change() -> None:
            with self.dialect.transaction(self.connection):
                [row] = self.dialect.lock_rows(self.connection, rows, wait=True)
                rows.update(rank=row.rank + 1)

        with self.holding(change) as end:
            waiting = self.begin(change)
            end(commit=True)
            waiting.result(timeout=self.patience)
        self.assertEqual(rows.get(pk=job_id).rank, 2)

    def test_rows_locked_by_another_transaction_are_passed_over(self) -> None:
        if not self.dialect.info.skips_locked:
            self.skipTest("DialectInfo.skips_locked is false")
        first, second = self.enqueue_many(2)
        rows = self.rows("ReadyExecution").order_by("job_id")
        with (
            self.holding(lambda: self.locked(rows.filter(pk=first), wait=True)),
            atomic(using=self.using),
        ):
            self.assertEqual(self.locked(rows, wait=False), [second])
