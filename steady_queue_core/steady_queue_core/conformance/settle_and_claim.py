"""Settling a batch and claiming the next in one operation."""

from __future__ import annotations

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob
from .base import ConformanceCase, ending, new_job
from .transactions import Refused


class SettleAndClaimCases(ConformanceCase):
    def test_both_are_done_as_one_after_the_other(self) -> None:
        self.enqueue(new_job("b", rank=3), new_job("b", rank=-1), new_job("a"), new_job("a"))
        worker = self.register()
        first, second = self.claim(2, process_id=worker)
        stale = self.finished(second._replace(token=9))
        held, claims = self.settle_and_claim(
            self.failed(first), stale, process_id=worker, limit=10, patterns=("b", "a")
        )
        self.assertEqual(held, {first.job_id})
        self.assertEqual([(claim.queue_name, claim.rank) for claim in claims], [("b", 3), ("a", 0)])
        self.assertEqual(self.ids("Failed"), [first.job_id])
        self.assertEqual(
            self.ids("Claimed"), sorted([second.job_id, *(claim.job_id for claim in claims)])
        )

    def test_a_claim_that_comes_with_a_settlement_tells_as_much(self) -> None:
        worker = self.register()
        [first] = (self.claimed_job(),)
        job = new_job("mail", rank=2, arguments='{"é": "%s"}', max_attempts=4)
        job_id, enqueued_at = self.enqueue_one(job)
        before = self.present()
        _, [claim] = self.settle_and_claim(self.finished(first), process_id=worker)
        self.assert_between(before, claim.claimed_at, self.present())
        self.assertEqual(
            claim._replace(claimed_at=enqueued_at),
            ClaimedJob(
                job_id=job_id, token=claim.token, queue_name="mail", rank=2,
                task_path="conformance.tasks.work", backend_name="default",
                arguments='{"é": "%s"}', attempts=0, max_attempts=4, worker_ids=None, errors=None,
                enqueued_at=enqueued_at, started_at=None, claimed_at=enqueued_at,
            ),
        )  # fmt: skip

    def test_the_limit_and_paused_queues_count_here_too(self) -> None:
        ids = self.enqueue_many(4)
        self.enqueue_many(2, "paused")
        self.pause("paused")
        worker = self.register()
        [first] = self.claim(1, process_id=worker)
        held, claims = self.settle_and_claim(self.finished(first), process_id=worker, limit=2)
        self.assertEqual((held, [claim.job_id for claim in claims]), ({ids[0]}, ids[1:3]))
        held, claims = self.settle_and_claim(self.finished(claims[0]), process_id=worker, limit=0)
        self.assertEqual((held, claims), ({ids[1]}, []))

    def test_a_released_job_may_be_claimed_at_once_with_the_next_token(self) -> None:
        worker = self.register()
        first = self.claimed_job()
        held, [again] = self.settle_and_claim(ending(Ending.RELEASED, first), process_id=worker)
        self.assertEqual((held, again.job_id), ({first.job_id}, first.job_id))
        self.assertGreater(again.token, first.token)

    def test_without_outcomes_or_jobs_there_is_nothing_to_tell(self) -> None:
        worker = self.register()
        self.assertEqual(self.settle_and_claim(process_id=worker), (set(), []))
        claim = self.claimed_job()
        self.assertEqual(
            self.settle_and_claim(self.finished(claim), process_id=worker), ({claim.job_id}, [])
        )
        [job_id] = self.enqueue_many(1)
        held, [claim] = self.settle_and_claim(process_id=worker)
        self.assertEqual((held, claim.job_id), (set(), job_id))

    def test_a_process_that_is_not_registered_may_settle_but_gets_nothing(self) -> None:
        gone = self.register()
        claim = self.claimed_job()
        [ready] = self.enqueue_many(1)
        self.rows("Process").filter(pk=gone).delete()
        self.assertEqual(
            self.settle_and_claim(self.finished(claim), process_id=gone), ({claim.job_id}, [])
        )
        self.assertEqual(self.ids("Ready"), [ready])

    def test_both_join_the_callers_transaction(self) -> None:
        worker = self.register()
        claim = self.claimed_job()
        self.enqueue_many(1)
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.settle_and_claim(self.finished(claim), process_id=worker)
            raise Refused
        self.assertEqual(self.everything(), before)
