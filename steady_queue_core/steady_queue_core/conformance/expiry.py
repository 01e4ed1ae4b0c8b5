"""What decides whether a job has expired: how long it has waited, by one clock, and for what."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob
from .base import ConformanceCase, ending, limited_job, new_job

HOUR = timedelta(hours=1)


class ExpiryCases(ConformanceCase):
    def enqueued_an_hour_ago(self, job_id: int) -> datetime:
        """Have a job wait since an hour; return since when exactly."""
        since = self.present() - HOUR
        self.rows("Job").filter(pk=job_id).update(enqueued_at=self.stored(since))
        return since

    def assert_waited(self, claim: ClaimedJob, since: datetime) -> None:
        self.assertEqual(claim.enqueued_at, since)
        self.assert_between(since + HOUR, claim.claimed_at, self.present())
        self.assertIsNone(claim.started_at)

    def test_a_claim_tells_how_long_its_job_has_waited_for_its_start(self) -> None:
        """By the database's clock; a claim that was given back was no start."""
        [job_id] = self.enqueue(new_job(max_attempts=3))
        since = self.enqueued_an_hour_ago(job_id)
        for _ in range(2):
            [claim] = self.claim()
            self.assert_waited(claim, since)
            self.settle(ending(Ending.RELEASED, claim))

    def test_a_claim_with_a_settlement_tells_how_long_its_job_has_waited(self) -> None:
        worker = self.register()
        first, second = self.enqueue_many(2)
        [claim] = self.claim(1, process_id=worker)
        since = self.enqueued_an_hour_ago(second)
        _, [another] = self.settle_and_claim(self.finished(claim), process_id=worker)
        self.assertEqual((claim.job_id, another.job_id), (first, second))
        self.assert_waited(another, since)

    def test_a_follower_tells_how_long_it_has_waited(self) -> None:
        worker = self.register()
        self.enqueue(limited_job())
        [job_id] = self.enqueue(limited_job())
        since = self.enqueued_an_hour_ago(job_id)
        holders = self.claim(process_id=worker)
        [follower] = self.claim_followers(holders, worker)
        self.assertEqual(follower.job_id, job_id)
        self.assert_waited(follower, since)

    def test_a_job_that_has_started_once_has_started(self) -> None:
        """Its later attempts are no first start."""
        claim = self.claimed_job(new_job(max_attempts=3))
        began = claim.claimed_at
        for delay in (0.0, 60.0):
            self.settle(ending(Ending.RETRIED, claim, attempts=1, started_at=began, delay=delay))
            for job_id in self.ids("Scheduled"):
                self.make_due(job_id)
            self.dialect.dispatch(self.connection, 10)
            [claim] = self.claim()
            self.assertEqual(claim.started_at, began)
            self.settle(ending(Ending.RELEASED, claim))
            [claim] = self.claim()
            self.assertEqual(claim.started_at, began)
