"""Members of batches, and jobs that wait for them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from unittest import mock

from django.db.transaction import atomic

from ..dialects.callbacks import ON_FAILURE, ON_FINISH, ON_SUCCESS
from ..dialects.membership import MemberState, RunWhen
from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob
from ..features.batches.link import Link
from .base import ending, limited_job, new_job
from .batch_rows import BatchRows
from .transactions import Refused

HOUR = timedelta(hours=1)


class BatchCases(BatchRows):
    def test_a_job_that_waits_has_no_execution(self) -> None:
        batch = self.new_batch()
        self.claim()
        later = self.present() + HOUR
        jobs = [
            new_job(waits=True), limited_job("a", 1, waits=True), limited_job("a", 1, waits=True),
            new_job("other", waits=True, run_at=later), new_job(waits=True, rank=-7),
        ]  # fmt: skip
        with self.assertRaises(Refused), atomic(using=self.using):
            ids = self.members(batch, *jobs)
            self.assertEqual(ids, sorted(ids))
            for state in ("Ready", "Scheduled", "Blocked", "Claimed", "Failed"):
                self.assertEqual(self.ids(state), [], state)
            self.assertFalse(self.rows("Permit").exists())
            self.assertFalse(self.rows("Semaphore").exists())
            found = [self.job(job_id) for job_id in ids]
            self.assertEqual([job.queue_name for job in found], [j.queue_name for j in jobs])
            self.assertEqual([job.rank for job in found], [0, 0, 0, 0, -7])
            self.assertEqual([job.concurrency_key for job in found], [None, "a", "a", None, None])
            self.assertEqual(found[1].concurrency_limit, 1)
            self.assertEqual(self.aware(found[3].scheduled_at), later)
            self.assertEqual({job.scheduled_at for job in found[:3]}, {None})
            self.assertTrue(all(Link.read(job.metadata) for job in found))
            raise Refused

    def test_a_waiting_job_moves_on_after_the_last_member(self) -> None:
        batch = self.new_batch()
        first, second = self.members(batch, new_job(), new_job())
        waiting = self.waiting(batch, first, second)
        claims = self.claim()
        self.assertEqual([claim.job_id for claim in claims], [first, second])
        self.settle_all(self.finished(claims[0]))
        self.assertEqual((self.ids("Waiting"), self.claim()), ([waiting], []))
        self.settle_all(self.finished(claims[1]))
        [claim] = self.claim()
        self.assertEqual((claim.job_id, claim.is_cancelled), (waiting, False))

    def test_a_job_that_is_not_to_run_is_asked_to_end(self) -> None:
        batch = self.new_batch()
        first, second = self.members(batch, new_job(), new_job())
        after_success = self.waiting(batch, first)
        after_failure = self.waiting(batch, second, run_when=RunWhen.FAILURE)
        self.waiting(batch, after_success)
        in_any_case = self.waiting(batch, first, second, run_when=RunWhen.FINISHED)
        claims = self.claim()
        self.settle_all(self.failed(claims[0]), self.finished(claims[1]))
        found = {claim.job_id: claim for claim in self.claim()}
        self.assertEqual(found.keys(), {after_success, after_failure, in_any_case})
        self.assertEqual(
            {pk for pk, claim in found.items() if claim.is_cancelled},
            {after_success, after_failure},
        )
        error = "steady_queue_core.errors.TaskCancelled"
        self.settle_all(
            self.failed(found[after_success], exception_class=error),
            self.failed(found[after_failure], exception_class=error),
        )
        self.assertIs(self.state_of(after_success), MemberState.CANCELLED)
        self.assertIs(self.state_of(after_failure), MemberState.SKIPPED)
        [last] = self.claim()
        self.assertTrue(last.is_cancelled)

    def test_a_waiting_job_with_a_limit_is_dispatched(self) -> None:
        batch = self.new_batch()
        [first] = self.members(batch, new_job())
        waiting = [self.waiting(batch, first, job=limited_job("a", 1)) for _ in range(2)]
        self.settle_all(self.finished(self.claim()[0]))
        self.assertEqual(self.ids("Scheduled"), waiting)
        self.wait_until(lambda: bool(self.dispatch_all()), "the jobs to be due")
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), (waiting[:1], waiting[1:]))
        self.check_permits()

    def dispatch_all(self) -> int:
        return self.dialect.dispatch(self.connection, 10).moved

    def refused(self, number: int = 1) -> tuple[int, list[int]]:
        """Return a batch, and members that are due and find no permit, but must not wait."""
        self.enqueue(limited_job("a", 1))
        batch = self.new_batch()
        jobs = [limited_job("a", 1, discards=True, delay=HOUR) for _ in range(number)]
        job_ids = self.members(batch, *jobs)
        for job_id in job_ids:
            self.make_due(job_id)
        return batch, job_ids

    def test_a_member_that_is_refused_when_it_is_due_ends_its_batch(self) -> None:
        batch, refused = self.refused(2)
        after = self.waiting(batch, refused[0])
        on_failure = self.waiting(batch, refused[1], run_when=RunWhen.FAILURE)
        other = self.new_batch()
        [last] = self.members(other, limited_job("a", 1, discards=True, delay=HOUR))
        self.make_due(last)
        self.assertEqual(self.dispatch_all(), 3)
        states = {self.state_of(job_id) for job_id in (*refused, last)}
        self.assertEqual(states, {MemberState.DISCARDED})
        self.assertIsNotNone(self.rows("JobBatch").get(pk=other).finished_at)
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])
        claims = {claim.job_id: claim for claim in self.claim()}
        self.assertTrue(claims[after].is_cancelled and claims[on_failure].is_cancelled)

    def test_a_refusal_of_members_that_is_rolled_back_ends_no_batch(self) -> None:
        """A dispatch in a transaction of the caller, and one that fails by itself."""
        batch, [refused] = self.refused()
        self.claim()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.assertEqual(self.dispatch_all(), 1)
            self.assertIs(self.state_of(refused), MemberState.DISCARDED)
            raise Refused
        self.assertEqual(self.everything(), before)
        # Its row of a batch cannot be written: nothing of the dispatch stays.
        stopped = mock.patch.object(type(self.dialect), "end_members", side_effect=Refused)
        with stopped:
            self.assertEqual(self.dispatch_all(), 0)
        self.assertEqual(self.everything(), before)
        # This connection leaves the job alone for some seconds.
        self.assertEqual(self.elsewhere(self.dispatch_all), 1)
        self.assertIsNotNone(self.rows("JobBatch").get(pk=batch).finished_at)

    # --- batches

    def test_the_last_member_ends_its_batch(self) -> None:
        batch = self.new_batch()
        self.members(batch, new_job(), new_job(), new_job())
        claims = self.claim()
        self.settle_all(self.finished(claims[0]), self.finished(claims[1]))
        self.assertEqual(self.callbacks(), [])
        self.settle_all(self.finished(claims[2], preserve=False))
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])
        row = self.rows("JobBatch").get()
        self.assertEqual((row.total, row.failed), (3, 0))
        self.assertIsNotNone(row.finished_at)
        self.assertEqual({claim.link for claim in self.claim()}, {Link(batch, is_callback=True)})

    def test_a_failure_is_counted(self) -> None:
        batch = self.new_batch()
        self.members(batch, new_job(), new_job())
        claims = self.claim()
        self.settle_all(self.failed(claims[0]), self.finished(claims[1]))
        self.assertEqual(self.callbacks(), [ON_FAILURE, ON_FINISH])
        self.assertEqual(self.rows("JobBatch").get().failed, 1)

    def test_a_job_that_has_not_ended_keeps_its_batch_open(self) -> None:
        batch = self.new_batch()
        self.members(batch, new_job(), new_job(), new_job())
        claims = self.claim()
        self.settle_all(
            ending(Ending.RETRIED, claims[0], attempts=1),
            ending(Ending.RETRIED, claims[1], attempts=1, delay=3600.0),
            ending(Ending.RELEASED, claims[2]),
        )
        self.assertEqual(self.callbacks(), [])
        self.assertFalse(self.rows("BatchMember").exclude(state=MemberState.PENDING).exists())

    def test_a_lost_claim_ends_no_member(self) -> None:
        batch = self.new_batch()
        self.members(batch, new_job())
        [claim] = self.claim()
        self.settle_all(ending(Ending.RELEASED, claim))
        self.assertEqual(self.settle(self.finished(claim)), set())
        self.assertEqual(self.callbacks(), [])
        [again] = self.claim()
        self.settle_all(self.finished(again))
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])

    def test_the_end_of_a_batch_is_the_transaction_of_its_last_member(self) -> None:
        batch = self.new_batch()
        self.members(batch, new_job())
        [claim] = self.claim()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.settle_all(self.finished(claim))
            self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])
            raise Refused
        self.assertEqual((self.callbacks(), self.ids("Claimed")), ([], [claim.job_id]))
        self.assertIsNone(self.rows("JobBatch").get().finished_at)
        self.settle_all(self.finished(claim))
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])

    def test_a_batch_within_a_batch_is_one_member(self) -> None:
        outer = self.new_batch()
        member = self.rows("BatchMember").create(batch_id=outer)
        inner = self.new_batch(member)
        self.members(outer, new_job())
        self.members(inner, new_job())
        claims = self.claim()
        self.settle_all(self.finished(claims[0]))
        self.assertEqual(self.callbacks(), [])
        self.settle_all(self.finished(claims[1]))
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH] * 2)
        self.assertFalse(self.rows("JobBatch").filter(finished_at=None).exists())

    def test_a_batch_that_is_not_complete_does_not_end(self) -> None:
        batch = self.new_batch(has_started=False)
        self.members(batch, new_job())
        self.settle_all(self.finished(self.claim()[0]))
        self.assertIsNone(self.rows("JobBatch").get().finished_at)

    def test_members_that_end_at_once_end_their_batch_once(self) -> None:
        for number in range(1, 6):
            batch = self.new_batch()
            self.members(batch, *[new_job() for _ in range(4)])
            claims = [claim for claim in self.claim() if not claim.queue_name.startswith("on_")]
            self.in_threads([partial(self._end, claim) for claim in claims])
            self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH] * number)

    def _end(self, claim: ClaimedJob) -> None:
        self.again(lambda: self.settle(self.finished(claim)))

    def test_the_last_two_members_do_not_overlook_each_other(self) -> None:
        batch = self.new_batch()
        self.members(batch, new_job(), new_job())
        first, second = self.claim()
        with self.holding(lambda: self.settle(self.finished(first))) as end:
            other = self.begin(lambda: self.again(lambda: self.settle(self.finished(second))))
            end(commit=True)
        self.assertEqual(other.result(self.patience), {second.job_id})
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])
