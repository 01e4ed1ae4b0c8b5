"""The clock is the database's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

from django.utils import timezone

from ..dialects import portable
from ..dialects.outcome import Ending
from .base import ConformanceCase, ending, limited_job, new_job

STANDS_STILL = (
    "the clock to move on within a transaction. Implement steady_queue_now with what this database "
    "has for the present time of a statement, such as PostgreSQL's STATEMENT_TIMESTAMP(): "
    "CURRENT_TIMESTAMP, which portable.now() takes where it knows no better, is on some databases "
    "the beginning of the transaction"
)


class ClockCases(ConformanceCase):
    def test_the_clock_is_the_databases_in_utc(self) -> None:
        """Compared with the portable clock, apart from the time between two statements."""
        reference = portable.current_time(self.connection, portable.now(self.connection))
        present = self.present()
        self.assertEqual(present.utcoffset(), timedelta(0))
        self.assertLess(abs(present - reference), timedelta(seconds=10))

    def test_the_clock_moves_on_within_a_transaction(self) -> None:
        with self.dialect.transaction(self.connection):
            begun = self.present()
            self.wait_until(lambda: self.present() > begun, STANDS_STILL)

    def test_the_clock_compares_with_what_is_stored(self) -> None:
        """Compared in a condition that the database evaluates."""
        now: Any = self.dialect.now(self.connection)
        jobs, scheduled = self.rows("Job"), self.rows("ScheduledExecution")
        _, later = self.enqueue(new_job(), new_job(delay=timedelta(seconds=60)))
        self.assertEqual(jobs.filter(enqueued_at__lte=now).count(), 2)
        self.assertEqual(scheduled.filter(due_at__gt=now).count(), 1)
        self.make_due(later, seconds_ago=0.001)
        self.assertEqual(scheduled.filter(due_at__lte=now).count(), 1)

    def test_the_clock_can_be_stored(self) -> None:
        process_id = self.register()
        processes = self.rows("Process").filter(pk=process_id)
        before = self.present()
        processes.update(last_heartbeat_at=self.dialect.now(self.connection))
        beat = self.aware(processes.get().last_heartbeat_at)
        self.assert_between(before, beat, self.present())
        named = processes.annotate(read=self.dialect.now(self.connection))
        self.assert_between(before, self.aware(named.get().read), self.present())

    def assert_one_is_at(self, rows: Any, field: str, instant: Any) -> None:
        """With each comparison, in the database."""
        for lookup, count in (("exact", 1), ("gt", 0), ("lt", 0), ("gte", 1), ("lte", 1)):
            found = rows.filter(**{f"{field}__{lookup}": instant}).count()
            self.assertEqual(found, count, (field, lookup, instant))

    def test_an_instant_of_the_clock_equals_itself_when_it_is_read_and_compared(self) -> None:
        processes = self.rows("Process").filter(pk=self.register())
        processes.update(last_heartbeat_at=self.dialect.now(self.connection))
        beat = processes.get().last_heartbeat_at
        self.assert_one_is_at(processes, "last_heartbeat_at", beat)

    def test_an_instant_equals_itself_whoever_has_stored_it(self) -> None:
        """For times with and without a fraction of a second."""
        for microsecond in (0, 5, 120_000, 999_999):
            due = (self.present() + timedelta(hours=1)).replace(microsecond=microsecond)
            instant = portable.storable(due)
            job_id, _ = self.enqueue_one(new_job(run_at=due))
            by_hand, _ = self.enqueue_one(new_job(delay=timedelta(hours=2)))
            scheduled = self.rows("ScheduledExecution")
            scheduled.filter(pk=by_hand).update(due_at=instant)
            for pk in (job_id, by_hand):
                self.assert_one_is_at(scheduled.filter(pk=pk), "due_at", instant)

    def test_every_instant_that_a_statement_writes_equals_itself(self) -> None:
        job_id, enqueued_at = self.enqueue_one(new_job())
        [claim] = self.claim()
        claimed = self.rows("ClaimedExecution").get()
        self.assert_one_is_at(self.rows("ClaimedExecution"), "created_at", claimed.created_at)
        self.settle(self.failed(claim))
        job = self.rows("Job").get(pk=job_id)
        self.assertEqual(self.aware(job.enqueued_at), enqueued_at)
        for field in ("enqueued_at", "finished_at"):
            self.assert_one_is_at(self.rows("Job"), field, getattr(job, field))
        failed = self.rows("FailedExecution").get()
        self.assert_one_is_at(self.rows("FailedExecution"), "created_at", failed.created_at)

    def whole_life(self) -> None:
        """Run every operation that stores a time, and check each of them."""
        before = self.present()
        job_id, enqueued_at = self.enqueue_one(new_job(delay=timedelta(seconds=60)))
        self.make_due(job_id, seconds_ago=0.001)
        self.assertEqual(self.dialect.dispatch(self.connection, 1).moved, 1)
        [retried] = self.claim()
        self.settle(ending(Ending.RETRIED, retried, attempts=1, delay=60.0))
        due = self.aware(self.rows("ScheduledExecution").get().due_at)
        self.make_due(job_id, seconds_ago=0.001)
        self.dialect.dispatch(self.connection, 1)
        [claim] = self.claim()
        self.settle(self.failed(claim))
        limited_id, _ = self.enqueue_one(limited_job())
        ready = self.rows("ReadyExecution").get(pk=limited_id)
        self.settle(*[self.finished(claim) for claim in self.claim()])
        job, failed = self.job(job_id), self.rows("FailedExecution").get(pk=job_id)
        after = self.present()
        for instant in (enqueued_at, retried.claimed_at, claim.claimed_at, job.enqueued_at,
                        job.finished_at, failed.created_at, due - timedelta(seconds=60),
                        ready.created_at):  # fmt: skip
            self.assert_between(before, self.aware(instant), after)

    def test_every_instant_is_taken_from_that_clock(self) -> None:
        self.whole_life()

    def test_the_projects_clock_is_not_asked(self) -> None:
        """The clock of the host does not matter."""
        wrong = timezone.now() + timedelta(hours=3)
        with mock.patch("django.utils.timezone.now", return_value=wrong):
            self.whole_life()

    def test_the_active_time_zone_changes_nothing(self) -> None:
        for name in ("Asia/Kathmandu", "America/St_Johns"):
            with timezone.override(name):
                self.whole_life()
