"""Names compare exactly: different names are never equal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..dialects.portable.models import model
from .base import ConformanceCase, limited_job, new_job

#: All different, though many a collation calls some of them equal.
ALIKE = ("A", "a", "á", "a\u0301", "a ", " a", "\uff41", "ß", "ss", "😀", "😁")


class NameCases(ConformanceCase):
    def test_queue_names_are_distinct(self) -> None:
        ids = self.enqueue(*[new_job(name) for name in ALIKE])
        for name, job_id in zip(ALIKE, ids, strict=True):
            claims = self.claim(99, name)
            self.assertEqual([(c.job_id, c.queue_name) for c in claims], [(job_id, name)])

    def test_a_pause_is_of_one_name_alone(self) -> None:
        self.enqueue(*[new_job(name) for name in ALIKE])
        self.pause("a", "ss")
        claims = self.claim(99, *ALIKE)
        expected = [name for name in ALIKE if name not in ("a", "ss")]
        self.assertEqual([claim.queue_name for claim in claims], expected)

    def test_a_queue_may_be_paused_beside_those_that_look_like_it(self) -> None:
        self.pause(*ALIKE)
        self.assertEqual(set(self.rows("Pause").values_list("pk", flat=True)), set(ALIKE))

    def test_semaphore_keys_are_distinct(self) -> None:
        first = self.enqueue(*[limited_job(key) for key in ALIKE])
        second = [self.enqueue(limited_job(key))[0] for key in ALIKE]
        self.assertEqual(self.ids("Ready"), first)
        claims = {claim.concurrency_key: claim for claim in self.claim()}
        self.assertEqual(set(claims), set(ALIKE))
        self.settle(self.finished(claims["a"]))
        self.assertEqual(self.ids("Ready"), [second[ALIKE.index("a")]])
        self.settle(self.finished(self.claim()[0]))
        values = dict(self.rows("Semaphore").values_list("key", "value"))
        self.assertEqual(values, {key: int(key == "a") for key in ALIKE})

    def test_recurring_task_keys_are_distinct(self) -> None:
        """When inserted if absent, selected and upserted."""
        slot = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
        for _ in range(2):
            rows = [
                model("RecurringExecution")(
                    task_key=key, run_at=self.stored(slot), created_at=self.stored(slot)
                )
                for key in ALIKE
            ]
            fields = ["task_key", "run_at"]
            new = [self.dialect.insert_if_absent(self.connection, row, fields) for row in rows]
            self.assertEqual(len(set(new)), 1, dict(zip(ALIKE, new, strict=True)))
        self.assertEqual(self.rows("RecurringExecution").count(), len(ALIKE))
        for key in ALIKE:
            [found] = self.rows("RecurringExecution").filter(task_key=key)
            self.assertEqual(found.task_key, key)

    def test_upserted_keys_are_distinct(self) -> None:
        for text in ("old", "new"):
            rows = [self.recurring_task(key, text) for key in ALIKE[: None if text == "old" else 2]]
            self.dialect.upsert(self.connection, rows, ["key"], ["description"])
        stored = dict(self.rows("RecurringTask").values_list("key", "description"))
        self.assertEqual(stored, {key: "new" if key in ALIKE[:2] else "old" for key in ALIKE})

    def test_the_exact_collation_is_a_name_or_none(self) -> None:
        collation = self.dialect.exact_collation(self.connection)
        self.assertTrue(collation is None or (isinstance(collation, str) and collation), collation)

    def recurring_task(self, key: str, description: str) -> Any:
        at = self.stored(self.present())
        return model("RecurringTask")(
            key=key, task_path="a.b", schedule="0 * * * *", timezone="UTC", arguments="{}",
            backend_name="default", queue_name="default", description=description,
            created_at=at, updated_at=at,
        )  # fmt: skip
