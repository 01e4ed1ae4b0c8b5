"""Inserting jobs with their first executions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import chain
from typing import Any

from django.db import DatabaseError
from django.db.transaction import atomic

from .base import ConformanceCase, limited_job, new_job
from .transactions import Refused


class EnqueueCases(ConformanceCase):
    def scheduled_for(self, job_id: int) -> datetime:
        return self.aware(self.rows("ScheduledExecution").get(pk=job_id).due_at)

    def test_enqueue_stores_a_job_as_it_was_given(self) -> None:
        job = new_job("mail", rank=-7, task_path="a.b", backend_name="other", arguments='{"x": 1}',
                      max_attempts=3)  # fmt: skip
        [job_id] = self.enqueue(job)
        row = self.job(job_id)
        for field in ("queue_name", "rank", "task_path", "backend_name", "arguments",
                      "max_attempts"):  # fmt: skip
            self.assertEqual(getattr(row, field), getattr(job, field), field)
        self.assertEqual((row.attempts, row.token), (0, 0))
        for field in ("concurrency_key", "worker_ids", "errors", "return_value", "started_at",
                      "last_attempted_at", "finished_at"):  # fmt: skip
            self.assertIsNone(getattr(row, field), field)

    def test_the_first_execution_has_the_jobs_queue_and_rank(self) -> None:
        ready, scheduled = self.enqueue(
            new_job("mail", rank=-7), new_job("cron", rank=9, delay=timedelta(hours=1))
        )
        row = self.rows("ReadyExecution").get(pk=ready)
        self.assertEqual((row.queue_name, row.rank, row.token), ("mail", -7, 0))
        row = self.rows("ScheduledExecution").get(pk=scheduled)
        self.assertEqual((row.queue_name, row.rank, row.token), ("cron", 9, 0))

    def test_ids_come_in_the_order_given_and_grow(self) -> None:
        jobs = [new_job(f"q{number}") for number in range(300)]
        jobs[7] = new_job("q7", delay=timedelta(hours=1))
        ids = self.enqueue(*jobs)
        self.assertEqual(ids, sorted(set(ids)))
        names = dict(self.rows("Job").values_list("pk", "queue_name"))
        self.assertEqual([names[job_id] for job_id in ids], [job.queue_name for job in jobs])
        self.assertGreater(self.enqueue_many(1)[0], ids[-1])

    def test_an_id_is_not_used_again(self) -> None:
        """Otherwise the outcome of an old claim could match a new job."""
        claim = self.claimed_job()
        self.settle(self.finished(claim, preserve=False))
        self.assertGreater(self.enqueue_many(1)[0], claim.job_id)

    def test_enqueued_at_is_the_databases_time(self) -> None:
        before = self.present()
        job_id, enqueued_at = self.enqueue_one(new_job())
        self.assert_between(before, enqueued_at, self.present())
        self.assertEqual(enqueued_at.utcoffset(), timedelta(0))
        self.assertEqual(self.aware(self.job(job_id).enqueued_at), enqueued_at)

    def test_the_instant_that_was_asked_for_is_kept_though_it_is_past(self) -> None:
        past, later = self.present() - timedelta(days=400), self.present() + timedelta(days=400)
        for job in (new_job(), limited_job()):
            due, waits, untimed = self.enqueue(
                replace(job, run_at=past), replace(job, run_at=later), job
            )
            self.assertEqual(self.aware(self.job(due).scheduled_at), past)
            self.assertEqual(self.aware(self.job(waits).scheduled_at), later)
            self.assertIsNone(self.job(untimed).scheduled_at)
            self.assertNotIn(due, self.ids("Scheduled"))

    def test_a_job_that_is_due_is_ready(self) -> None:
        """This includes a job that was due before it was enqueued."""
        past = self.present() - timedelta(days=400)
        ids = self.enqueue(
            new_job(), new_job(run_at=past), new_job(delay=timedelta(0)),
            new_job(delay=timedelta(seconds=-5)),
        )  # fmt: skip
        self.assertEqual(self.ids("Ready"), ids)

    def test_a_job_of_later_is_scheduled_for_that_instant(self) -> None:
        """To the microsecond, in whatever time zone it was given."""
        later = (self.present() + timedelta(days=1)).replace(microsecond=123_456)
        zone = timezone(timedelta(hours=5, minutes=45))
        first, second = self.enqueue(new_job(run_at=later), new_job(run_at=later.astimezone(zone)))
        self.assertEqual(self.ids("Scheduled"), [first, second])
        self.assertEqual(self.scheduled_for(first), later)
        self.assertEqual(self.scheduled_for(second), later)

    def test_instants_far_away_are_kept(self) -> None:
        far = datetime(2999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
        [job_id] = self.enqueue(new_job(run_at=far))
        self.assertEqual(self.scheduled_for(job_id), far)

    def test_a_delay_counts_from_the_databases_time(self) -> None:
        job_id, enqueued_at = self.enqueue_one(new_job(delay=timedelta(seconds=90.5)))
        self.assertEqual(self.scheduled_for(job_id) - enqueued_at, timedelta(seconds=90.5))

    def test_nothing_to_enqueue_inserts_nothing(self) -> None:
        self.assertEqual(self.enqueue(), [])
        self.assertEqual(self.rows("Job").count(), 0)

    def test_all_jobs_are_inserted_or_none(self) -> None:
        broken: Any = None
        for job in (new_job(arguments=broken), new_job(broken, delay=timedelta(hours=1))):
            with self.assertRaises(DatabaseError):
                self.enqueue(new_job(), new_job(delay=timedelta(hours=1)), job)
            self.assertEqual(self.rows("Job").count(), 0)
            self.assertEqual(self.ids("Ready") + self.ids("Scheduled"), [])
        self.assertEqual(len(self.enqueue_many(1)), 1)

    def test_enqueue_joins_the_callers_transaction(self) -> None:
        """A rollback leaves nothing; a commit makes job and execution visible together."""
        with self.assertRaises(Refused), atomic(using=self.using):
            self.enqueue(new_job(), new_job(delay=timedelta(hours=1)))
            raise Refused
        self.assertEqual(self.rows("Job").count(), 0)
        self.assertEqual(self.ids("Ready") + self.ids("Scheduled"), [])
        with atomic(using=self.using):
            ids = self.enqueue_many(2)
            self.assertEqual(self.elsewhere(self.rows("Job").count), 0)
        self.assertEqual(self.elsewhere(lambda: self.ids("Ready")), ids)
        self.assertEqual(self.elsewhere(self.rows("Job").count), 2)

    def test_many_threads_enqueue_at_once(self) -> None:
        def enqueue_ten() -> list[int]:
            return [job_id for _ in range(5) for job_id in self.enqueue_many(2)]

        batches = self.in_threads([enqueue_ten] * 4)
        for ids in batches:
            self.assertEqual(ids, sorted(ids))
        self.assertEqual(sorted(chain.from_iterable(batches)), self.ids("Ready"))
        self.assertEqual(len(self.ids("Ready")), 40)
