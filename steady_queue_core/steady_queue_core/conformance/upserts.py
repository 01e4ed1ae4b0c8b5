"""Inserting rows that may exist already."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from threading import Barrier
from typing import Any

from django.db import IntegrityError
from django.db.transaction import atomic

from ..dialects.portable.models import model
from .base import ConformanceCase
from .transactions import Refused

SLOT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
UNIQUE = ("task_key", "run_at")


class UpsertCases(ConformanceCase):
    def slot(self, task_key: Any, job_id: int | None = None) -> Any:
        """Return an unsaved run of a recurring task, always of the same time."""
        at = self.stored(SLOT)
        return model("RecurringExecution")(
            task_key=task_key, run_at=at, created_at=at, job_id=job_id
        )

    def insert(self, row: Any, *unique_fields: str) -> bool:
        return self.dialect.insert_if_absent(self.connection, row, unique_fields or UNIQUE)

    def process(self, name: str, **fields: Any) -> Any:
        at = self.stored(SLOT)
        return model("Process")(
            name=name, kind="Worker", pid=1, created_at=at, last_heartbeat_at=at, **fields
        )

    def slots(self) -> list[tuple[str, int | None]]:
        return sorted(self.rows("RecurringExecution").values_list("task_key", "job_id"))

    def test_an_absent_row_is_inserted_and_a_present_one_left_as_it_is(self) -> None:
        self.assertIs(self.insert(self.slot("a", job_id=1)), True)
        self.assertIs(self.insert(self.slot("a", job_id=2)), False)
        self.assertIs(self.insert(self.slot("b", job_id=3)), True)
        self.assertEqual(self.slots(), [("a", 1), ("b", 3)])

    def test_the_transaction_stays_usable_whether_inserted_or_not(self) -> None:
        self.insert(self.slot("old"))
        with self.dialect.transaction(self.connection):
            self.assertTrue(self.insert(self.slot("a")))
            self.assertFalse(self.insert(self.slot("old")))
            self.assertEqual(self.rows("RecurringExecution").count(), 2)
            self.assertTrue(self.insert(self.slot("b")))
            [job_id] = self.enqueue_many(1)
        self.assertEqual([key for key, _ in self.slots()], ["a", "b", "old"])
        self.assertEqual(self.ids("Ready"), [job_id])

    def test_of_many_threads_that_insert_a_row_exactly_one_does(self) -> None:
        for key in ("first", "second", "third"):
            together = Barrier(6, timeout=self.patience)

            def insert(number: int, key: str = key, together: Barrier = together) -> bool:
                together.wait()
                return self.again(lambda: self.insert(self.slot(key, job_id=number)))

            won = self.in_threads([partial(insert, number) for number in range(6)])
            self.assertEqual(won.count(True), 1)
            self.assertIn((key, won.index(True)), self.slots())

    def test_a_row_that_another_transaction_takes_back_is_absent(self) -> None:
        """A row that it commits is present, however long that takes."""
        for key, commits in (("taken back", False), ("committed", True)):
            with self.holding(partial(self.insert, self.slot(key))) as end:
                waiting = self.begin(partial(self.insert, self.slot(key)))
                end(commit=commits)
                self.assertIs(waiting.result(timeout=self.patience), not commits)

    def test_a_row_newer_than_the_callers_snapshot_is_present(self) -> None:
        with atomic(using=self.using):
            self.rows("Job").count()
            begun = self.begin(lambda: self.insert(self.slot("a", job_id=1)))
            if self.dialect.info.skips_locked:
                begun.result(timeout=self.patience)
                self.assertIs(self.insert(self.slot("a", job_id=2)), False)
        self.assertIs(begun.result(timeout=self.patience), True)
        self.assertEqual(self.slots(), [("a", 1)])

    def test_other_integrity_errors_are_raised(self) -> None:
        """A missing value, and a conflict in a column other than the given ones."""
        with self.assertRaises(IntegrityError):
            self.insert(self.slot(None))
        first = self.process("first")
        self.assertTrue(self.insert(first, "name"))
        with self.assertRaises(IntegrityError):
            self.insert(self.process("second", pk=self.rows("Process").get().pk), "name")
        self.assertEqual([row.name for row in self.rows("Process")], ["first"])

    def upsert(self, *rows: Any, update: tuple[str, ...] = ("kind", "hostname")) -> None:
        self.dialect.upsert(self.connection, rows, ["name"], update)

    def hosts(self) -> dict[str, str]:
        return dict(self.rows("Process").values_list("name", "hostname"))

    def test_upsert_inserts_new_rows_and_updates_those_there(self) -> None:
        self.upsert(self.process("a", hostname="old"), self.process("other", hostname="old"))
        self.upsert(self.process("a", hostname="new"), self.process("b", hostname="new"))
        self.assertEqual(self.hosts(), {"a": "new", "b": "new", "other": "old"})

    def test_upsert_updates_only_the_fields_named(self) -> None:
        self.upsert(self.process("a", hostname="old", metadata="old", supervisor_id=1))
        before = self.rows("Process").get()
        self.upsert(self.process("a", hostname="new", metadata="new", supervisor_id=2))
        row = self.rows("Process").get()
        self.assertEqual((row.pk, row.hostname), (before.pk, "new"))
        self.assertEqual((row.metadata, row.supervisor_id), ("old", 1))

    def test_upsert_of_nothing_does_nothing(self) -> None:
        self.upsert()
        self.assertEqual(self.hosts(), {})

    def test_upsert_takes_many_rows(self) -> None:
        names = [f"process-{number}" for number in range(300)]
        self.upsert(*[self.process(name, hostname="old") for name in names[:200]])
        self.upsert(*[self.process(name, hostname="new") for name in names[100:]])
        expected = {name: "old" if name in names[:100] else "new" for name in names}
        self.assertEqual(self.hosts(), expected)

    def test_upsert_joins_the_callers_transaction(self) -> None:
        with self.assertRaises(Refused), atomic(using=self.using):
            self.upsert(self.process("a"))
            raise Refused
        self.assertEqual(self.hosts(), {})

    def test_upsert_locks_its_rows_in_the_order_given(self) -> None:
        """Two transactions with the same order never wait for each other."""
        if not self.dialect.info.skips_locked:
            self.skipTest("DialectInfo.skips_locked is false")
        processes = [self.process(name) for name in ("c", "a", "b")]
        self.upsert(*processes)
        rows = self.rows("Process")

        def hold() -> None:
            list(self.dialect.lock_rows(self.connection, rows.filter(name="a"), wait=True))

        def free() -> list[str]:
            with self.dialect.transaction(self.connection):
                found = self.dialect.lock_rows(self.connection, rows, wait=False)
                return [row.name for row in found]

        with self.holding(hold) as end:
            upserting = self.begin(lambda: self.again(lambda: self.upsert(*processes)))
            self.wait_until(lambda: free() == ["b"], "the upsert to have locked the first row")
            end(commit=True)
            upserting.result(timeout=self.patience)

    def test_many_threads_upsert_the_same_row(self) -> None:
        together = Barrier(4, timeout=self.patience)

        def upsert(host: str) -> None:
            together.wait()
            self.again(lambda: self.upsert(self.process("a", hostname=host)))

        self.in_threads([partial(upsert, f"host-{number}") for number in range(4)])
        [host] = self.hosts().values()
        self.assertIn(host, {f"host-{number}" for number in range(4)})
