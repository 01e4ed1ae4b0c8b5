"""Ending claims: where jobs go, and what is stored of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.db.transaction import atomic

from ..dialects import portable
from ..dialects.outcome import Ending
from .base import FINGERPRINT, ConformanceCase, ending, new_job
from .transactions import Refused


class SettleCases(ConformanceCase):
    def test_a_finished_job_is_completed_with_its_result(self) -> None:
        claim = self.claimed_job()
        started = self.present() - timedelta(seconds=5)
        before = self.present()
        outcome = self.finished(
            claim, attempts=2, worker_ids='["a", "b"]', errors="[]", return_value='{"x": 1}',
            started_at=started, last_attempted_at=started + timedelta(seconds=2),
        )  # fmt: skip
        self.assertEqual(self.settle(outcome), {claim.job_id})
        job = self.job(claim.job_id)
        self.assert_between(before, self.aware(job.finished_at), self.present())
        self.assertEqual((job.attempts, job.token, job.return_value), (2, claim.token, '{"x": 1}'))
        self.assertEqual((job.worker_ids, job.errors), ('["a", "b"]', "[]"))
        self.assertEqual(self.aware(job.started_at), started)
        self.assertEqual(self.aware(job.last_attempted_at), started + timedelta(seconds=2))
        self.assertEqual(self.ids("Claimed"), [])

    def test_a_finished_job_that_is_not_preserved_is_deleted(self) -> None:
        claim, other = self.claimed_job(), self.claimed_job()
        self.assertEqual(self.settle(self.finished(claim, preserve=False)), {claim.job_id})
        self.assertEqual([job.pk for job in self.rows("Job")], [other.job_id])
        self.assertEqual(self.ids("Claimed"), [other.job_id])

    def test_a_failed_job_is_completed_with_its_errors_and_a_failed_row(self) -> None:
        claim = self.claimed_job()
        before = self.present()
        outcome = self.failed(claim, errors='[["E", "tb"]]', preserve=False)
        self.assertEqual(self.settle(outcome), {claim.job_id})
        job, row = self.job(claim.job_id), self.rows("FailedExecution").get()
        self.assertEqual((job.errors, job.attempts, job.token), ('[["E", "tb"]]', 1, claim.token))
        self.assertEqual((row.pk, row.exception_class), (claim.job_id, "builtins.ValueError"))
        self.assertEqual(row.message, "no")
        for instant in (job.finished_at, row.created_at):
            self.assert_between(before, self.aware(instant), self.present())

    def test_a_failed_row_has_the_fingerprint_of_its_outcome_or_none(self) -> None:
        known, unknown = self.claimed_job(), self.claimed_job()
        self.settle(self.failed(known), self.failed(unknown, fingerprint=None))
        found = dict(self.rows("FailedExecution").values_list("pk", "fingerprint"))
        self.assertIn(found.pop(known.job_id), (FINGERPRINT, None))
        self.assertEqual(found, {unknown.job_id: None})

    def test_a_failed_row_that_is_there_already_is_replaced(self) -> None:
        claim = self.claimed_job()
        self.rows("FailedExecution").create(
            job_id=claim.job_id,
            created_at=portable.storable(self.present()),
            exception_class="a.B",
            message="of old",
        )
        self.assertEqual(self.settle(self.failed(claim)), {claim.job_id})
        row = self.rows("FailedExecution").get()
        self.assertEqual((row.exception_class, row.message), ("builtins.ValueError", "no"))

    def test_a_job_retried_without_delay_is_ready(self) -> None:
        claim = self.claimed_job(new_job("mail", rank=4, max_attempts=2))
        outcome = ending(Ending.RETRIED, claim, attempts=1, errors='["x"]', worker_ids='["w"]')
        self.assertEqual(self.settle(outcome), {claim.job_id})
        row, job = self.rows("ReadyExecution").get(), self.job(claim.job_id)
        self.assertEqual((row.queue_name, row.rank, row.token), ("mail", 4, claim.token))
        self.assertEqual((job.attempts, job.errors, job.worker_ids), (1, '["x"]', '["w"]'))
        self.assertIsNone(job.finished_at)

    def test_a_job_retried_with_a_delay_is_scheduled_by_the_databases_clock(self) -> None:
        claim = self.claimed_job(new_job("mail", rank=4, max_attempts=2))
        before = self.present()
        self.settle(ending(Ending.RETRIED, claim, attempts=1, errors='["x"]', delay=90.5))
        row, job = self.rows("ScheduledExecution").get(), self.job(claim.job_id)
        self.assertEqual((row.queue_name, row.rank, row.token), ("mail", 4, claim.token))
        self.assert_between(
            before, self.aware(row.due_at) - timedelta(seconds=90.5), self.present()
        )
        self.assertEqual((job.attempts, job.errors, job.finished_at), (1, '["x"]', None))

    def test_a_released_job_is_ready_as_before(self) -> None:
        """No attempt is counted, and the job itself does not change."""
        claim = self.claimed_job(new_job("mail", rank=4))
        before = self.everything()["Job"]
        outcome = ending(Ending.RELEASED, claim, attempts=9, errors="x", worker_ids="y")
        self.assertEqual(self.settle(outcome), {claim.job_id})
        row = self.rows("ReadyExecution").get()
        self.assertEqual((row.queue_name, row.rank, row.token), ("mail", 4, claim.token))
        self.assertEqual(self.everything()["Job"], before)
        self.assertEqual(self.ids("Claimed"), [])

    def test_a_released_job_keeps_what_earlier_attempts_left(self) -> None:
        claim = self.claimed_job(new_job(max_attempts=3))
        self.settle(ending(Ending.RETRIED, claim, attempts=1, errors='["x"]', worker_ids='["w"]'))
        [claim] = self.claim()
        self.settle(ending(Ending.RELEASED, claim))
        job = self.job(claim.job_id)
        self.assertEqual((job.attempts, job.errors, job.worker_ids), (1, '["x"]', '["w"]'))

    def test_a_batch_ends_each_job_in_its_own_way(self) -> None:
        self.enqueue_many(6)
        a, b, c, d, e, held = self.claim()
        outcomes = [
            self.finished(a), self.finished(b, preserve=False), self.failed(c),
            ending(Ending.RETRIED, d, attempts=1, delay=60.0), ending(Ending.RELEASED, e),
        ]  # fmt: skip
        self.assertEqual(self.settle(*outcomes), {claim.job_id for claim in (a, b, c, d, e)})
        self.assertIsNotNone(self.job(a.job_id).finished_at)
        self.assertFalse(self.rows("Job").filter(pk=b.job_id).exists())
        self.assertEqual(self.ids("Failed"), [c.job_id])
        self.assertEqual(self.ids("Scheduled"), [d.job_id])
        self.assertEqual(self.ids("Ready"), [e.job_id])
        self.assertEqual(self.ids("Claimed"), [held.job_id])

    def test_a_large_batch_is_settled(self) -> None:
        ids = self.enqueue_many(600)
        outcomes = [self.finished(claim, return_value=str(claim.job_id)) for claim in self.claim()]
        self.assertEqual(self.settle(*outcomes), set(ids))
        stored = dict(self.rows("Job").values_list("pk", "return_value"))
        self.assertEqual(stored, {job_id: str(job_id) for job_id in ids})

    def test_nothing_to_settle_changes_nothing(self) -> None:
        self.claimed_job()
        before = self.everything()
        self.assertEqual(self.settle(), set())
        self.assertEqual(self.everything(), before)

    def test_all_outcomes_are_one_transaction(self) -> None:
        """An outcome that cannot be stored rolls back the others."""
        self.enqueue_many(3)
        a, b, c = self.claim()
        before = self.everything()
        broken: Any = self.failed(c, message=None)
        with self.assertRaises(DatabaseError):
            self.settle(self.finished(a), ending(Ending.RELEASED, b), broken)
        self.assertEqual(self.everything(), before)

    def test_settle_joins_the_callers_transaction(self) -> None:
        self.enqueue_many(2)
        a, b = self.claim()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.settle(self.finished(a), self.failed(b))
            self.assertEqual(len(self.elsewhere(lambda: self.ids("Claimed"))), 2)
            raise Refused
        self.assertEqual(self.everything(), before)
