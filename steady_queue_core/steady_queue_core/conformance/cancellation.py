"""Jobs that are cancelled: those that wait end at once, and of others every claim tells."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import SkipTest

from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob
from .base import ConformanceCase, ending, limited_job, new_job

HOUR = timedelta(hours=1)
#: How a claim may end so that its job is claimed again.
NOT_THE_END: tuple[tuple[Ending, dict[str, Any]], ...] = (
    (Ending.RELEASED, {}),
    (Ending.RETRIED, {"attempts": 1}),
    (Ending.RETRIED, {"attempts": 1, "delay": 60.0}),
)


class CancellationCases(ConformanceCase):
    def cancel(self, *job_ids: int) -> int:
        """Cancel jobs as a project does; return how many waited or ran."""
        return int(self.rows("Job").filter(pk__in=job_ids).cancel())

    def assert_told(self, claim: ClaimedJob) -> None:
        self.assertTrue(claim.is_cancelled)
        self.assertEqual(abs(claim.max_attempts), 3)

    def make_all_due(self) -> None:
        for job_id in self.ids("Scheduled"):
            self.make_due(job_id)
        self.dialect.dispatch(self.connection, 100)

    def test_a_job_that_is_cancelled_while_it_waits_is_not_claimed(self) -> None:
        """Its permit passes to the next one, and it can be retried."""
        holder, blocked, next_one = self.enqueue(limited_job(), limited_job(), limited_job())
        ready, scheduled = self.enqueue(new_job()), self.enqueue(new_job(delay=HOUR))
        cancelled = [holder, blocked, *ready, *scheduled]
        self.assertEqual(self.cancel(*cancelled), 4)
        self.assertEqual(self.ids("Failed"), sorted(cancelled))
        self.check_permits()
        self.make_all_due()
        self.assertEqual([claim.job_id for claim in self.claim()], [next_one])
        self.assertEqual(self.cancel(*cancelled), 0)

    def test_each_claim_tells_that_its_job_was_cancelled_while_it_ran(self) -> None:
        """However the claim has ended that was held then."""
        for job in (new_job(max_attempts=3), limited_job(max_attempts=3)):
            for how, fields in NOT_THE_END:
                claim = self.claimed_job(job)
                self.assertEqual(self.cancel(claim.job_id), 1)
                self.assertEqual(self.cancel(claim.job_id), 0)
                self.settle(ending(how, claim, **fields))
                self.make_all_due()
                [again] = self.claim()
                self.assert_told(again)
                self.settle(self.failed(again))

    def test_a_claim_that_comes_with_a_settlement_tells_it_too(self) -> None:
        worker = self.register()
        self.enqueue(new_job(max_attempts=3))
        [claim] = self.claim(process_id=worker)
        self.cancel(claim.job_id)
        _, [again] = self.settle_and_claim(ending(Ending.RELEASED, claim), process_id=worker)
        self.assert_told(again)

    def test_the_claim_of_a_follower_tells_that_it_was_cancelled(self) -> None:
        if not self.dialect.claims_followers:
            raise SkipTest("this dialect claims no followers")
        worker = self.register()
        self.enqueue(limited_job(), limited_job(max_attempts=3))
        holders = self.claim(process_id=worker)
        for number in range(2):
            [follower] = self.dialect.claim_followers(
                self.connection, self.identity(worker), holders, 1
            )
            self.followers.add(follower.job_id)
            if number:
                self.assert_told(follower)
            else:
                self.assertEqual(self.cancel(follower.job_id), 1)
                self.settle(ending(Ending.RELEASED, follower))

    def test_a_cancelled_job_that_is_retried_may_run_again(self) -> None:
        claim = self.claimed_job(new_job(max_attempts=3))
        self.cancel(claim.job_id)
        self.settle(self.failed(claim))
        self.assertEqual(self.rows("Job").filter(pk=claim.job_id).retry_failed(), 1)
        [again] = self.claim()
        self.assertFalse(again.is_cancelled)
        self.assertEqual(again.max_attempts, 3)
        self.assertGreater(again.token, claim.token)

    def test_a_job_that_finishes_although_it_was_cancelled_has_finished(self) -> None:
        claim = self.claimed_job(new_job(max_attempts=3))
        self.cancel(claim.job_id)
        self.assertEqual(self.settle(self.finished(claim)), {claim.job_id})
        self.assertEqual(self.cancel(claim.job_id), 0)
        self.assertEqual(self.ids("Failed"), [])
        self.assertEqual(self.job(claim.job_id).return_value, "1")
