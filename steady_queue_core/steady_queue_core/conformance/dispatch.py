"""Moving scheduled jobs that are due to ready."""

from __future__ import annotations

from datetime import timedelta
from threading import Barrier

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.records import Dispatched
from .base import ConformanceCase, ending, new_job
from .transactions import Refused


class DispatchCases(ConformanceCase):
    def dispatch(self, limit: int = 100) -> Dispatched:
        return self.dialect.dispatch(self.connection, limit)

    def schedule(self, *ranks: int) -> list[int]:
        """Enqueue a job for each rank, all due in an hour."""
        return self.enqueue(*[new_job(rank=rank, delay=timedelta(hours=1)) for rank in ranks])

    def schedule_due(self, count: int) -> list[int]:
        """Enqueue overdue jobs, in the order of their due times."""
        ids = self.schedule(*[0] * count)
        for number, job_id in enumerate(ids):
            self.make_due(job_id, seconds_ago=60 + count - number)
        return ids

    def test_due_jobs_become_ready_and_others_stay(self) -> None:
        due, later = self.schedule(0, 0)
        self.make_due(due, seconds_ago=0.001)
        self.assertEqual(self.dispatch().moved, 1)
        self.assertEqual((self.ids("Ready"), self.ids("Scheduled")), ([due], [later]))

    def test_a_job_that_is_not_due_never_moves(self) -> None:
        [job_id] = self.schedule(0)
        for _ in range(3):
            self.assertEqual(self.dispatch().moved, 0)
        self.assertEqual(self.ids("Scheduled"), [job_id])

    def test_a_job_becomes_ready_when_its_time_has_come(self) -> None:
        """By the database's clock, and not before."""
        delay = timedelta(seconds=0.3)
        job_id, enqueued_at = self.enqueue_one(new_job(delay=delay))
        self.wait_until(lambda: self.dispatch().moved == 1, "a job that is due to move")
        self.assertGreaterEqual(self.present(), enqueued_at + delay)
        self.assertEqual(self.ids("Ready"), [job_id])

    def test_the_earliest_due_comes_first(self) -> None:
        """Then by rank, then by id."""
        ids = self.schedule(5, 5, -5, 0)
        since = self.make_due(ids[0])
        for job_id in ids[1:3]:
            self.make_due(job_id)
        later = {"due_at": self.stored(since + timedelta(seconds=1))}
        self.rows("ScheduledExecution").filter(pk__in=ids[:3]).update(**later)
        self.make_due(ids[3], seconds_ago=90)
        moved: list[int] = []
        while len(moved) < 4:
            self.assertEqual(self.dispatch(1).moved, 1)
            moved += [job_id for job_id in self.ids("Ready") if job_id not in moved]
        self.assertEqual(moved, [ids[3], ids[2], ids[0], ids[1]])

    def test_no_more_jobs_move_than_the_limit(self) -> None:
        ids = self.schedule_due(5)
        self.assertEqual(self.dispatch(0).moved, 0)
        self.assertEqual(self.dispatch(2).moved, 2)
        self.assertEqual(self.ids("Ready"), ids[:2])
        self.assertEqual(self.dispatch(10).moved, 3)
        self.assertEqual(self.ids("Scheduled"), [])

    def test_a_moved_job_keeps_queue_rank_and_token(self) -> None:
        claim = self.claimed_job(new_job("mail", rank=4, max_attempts=2))
        self.settle(ending(Ending.RETRIED, claim, attempts=1, delay=60.0))
        self.make_due(claim.job_id)
        before = self.everything()["Job"]
        self.dispatch()
        row = self.rows("ReadyExecution").get()
        self.assertEqual((row.queue_name, row.rank, row.token), ("mail", 4, claim.token))
        self.assertEqual(self.everything()["Job"], before)

    def test_dispatch_says_when_the_next_job_is_due(self) -> None:
        """In seconds: 0 if one is due already, ``None`` if none is scheduled."""
        self.assertEqual(self.dispatch(), Dispatched(0, None))
        self.enqueue(new_job(delay=timedelta(hours=2)), new_job(delay=timedelta(seconds=60)))
        before = self.present()
        moved, wait = self.dispatch()
        self.assertEqual(moved, 0)
        assert wait is not None
        self.assertLessEqual(wait, 60)
        self.assertGreaterEqual(wait, 60 - (self.present() - before).total_seconds() - 5)
        self.schedule_due(2)
        self.assertEqual(self.dispatch(1), Dispatched(1, 0.0))
        moved, wait = self.dispatch(1)
        self.assertEqual(moved, 1)
        self.assertTrue(wait is not None and 0 < wait <= 60, wait)

    def test_after_the_last_job_has_moved_none_is_due(self) -> None:
        self.schedule_due(1)
        self.assertEqual(self.dispatch(), Dispatched(1, None))

    def test_a_dispatch_that_is_rolled_back_moves_nothing(self) -> None:
        self.schedule_due(2)
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.assertEqual(self.dispatch().moved, 2)
            raise Refused
        self.assertEqual(self.everything(), before)

    def test_of_many_dispatchers_exactly_one_moves_each_job(self) -> None:
        ids = self.schedule_due(40)
        together = Barrier(4, timeout=self.patience)

        def work() -> int:
            together.wait()
            moved = 0
            for _ in self.until_deadline():
                if not self.ids("Scheduled"):
                    break
                moved += self.again(lambda: self.dispatch(3)).moved
            return moved

        self.assertEqual(sum(self.in_threads([work] * 4)), len(ids))
        self.assertEqual(self.ids("Ready"), ids)

    def test_jobs_that_another_dispatcher_holds_are_passed_over(self) -> None:
        if not self.dialect.info.skips_locked:
            self.skipTest("DialectInfo.skips_locked is false")
        ids = self.schedule_due(10)
        with self.holding(lambda: self.dispatch(4)):
            self.assertEqual(self.dispatch(4).moved, 4)
            self.assertEqual(self.ids("Ready"), ids[4:8])
        self.assertEqual(self.dispatch(4).moved, 4)
        self.assertEqual(self.ids("Ready"), ids[:8])
