"""What attempts store for their jobs while they run, and what becomes of it with the outcome."""

from __future__ import annotations

from concurrent.futures import wait
from functools import partial
from typing import Any

from django.db.transaction import atomic

from ..dialects.held_rows import CheckpointChange
from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob
from ..dialects.sequel import Sequel
from ..progress import LARGEST, LONGEST_TEXT, Progress
from .base import ConformanceCase, ending
from .transactions import Refused

DATA = '{"row":17,"name":"\\u00c5sa \\\\ \'x\' %s"}'
PROGRESS = Progress(3, 4.5, "Åsa 😀 \\ 'x' %s")


class CheckpointCases(ConformanceCase):
    def save(self, claim: ClaimedJob, **changes: Any) -> bool:
        change = CheckpointChange(claim.job_id, claim.token, **changes)
        return self.dialect.save_checkpoint(self.connection, change)

    def save_something(self, claim: ClaimedJob) -> bool:
        return self.save(claim, data=DATA)

    def save_five(self, claim: ClaimedJob, first: int) -> list[bool]:
        numbers = range(first, first + 5)
        return [self.again(partial(self.save, claim, data=f"{number}")) for number in numbers]

    def is_held(self, claim: ClaimedJob) -> bool:
        return self.dialect.is_held(self.connection, claim.job_id, claim.token)

    @property
    def checkpoints(self) -> dict[int, Any]:
        return {row.pk: row for row in self.rows("Checkpoint")}

    def told(self, claim: ClaimedJob) -> tuple[Any, ...]:
        """Return what is stored for a job."""
        row = self.checkpoints[claim.job_id]
        return row.token, row.data, row.done, row.total, row.text

    def test_a_checkpoint_is_stored_while_the_claim_is_held(self) -> None:
        self.enqueue_many(3)
        a, b, _ = self.claim()
        before = self.present()
        self.assertIs(self.save(a, data=DATA, progress=PROGRESS), True)
        self.assertIs(self.save(b, data="2"), True)
        after = self.present()
        self.assertEqual(sorted(self.checkpoints), [a.job_id, b.job_id])
        self.assertEqual(self.told(a), (a.token, DATA, 3, 4.5, PROGRESS.text))
        self.assertEqual(self.told(b), (b.token, "2", None, None, ""))
        for row in self.checkpoints.values():
            self.assert_between(before, self.aware(row.updated_at), after)

    def test_what_a_change_does_not_name_stays(self) -> None:
        claim = self.claimed_job()
        self.save(claim, progress=PROGRESS)
        self.assertEqual(self.told(claim), (claim.token, None, 3, 4.5, PROGRESS.text))
        self.save(claim, data=DATA)
        self.assertEqual(self.told(claim), (claim.token, DATA, 3, 4.5, PROGRESS.text))
        self.save(claim, progress=Progress(4))
        self.assertEqual(self.told(claim), (claim.token, DATA, 4, None, ""))

    def test_a_later_attempt_replaces_what_an_earlier_one_has_stored(self) -> None:
        first = self.claimed_job()
        self.save(first, data="1", progress=Progress(1))
        earlier = self.aware(self.checkpoints[first.job_id].updated_at)
        self.settle(ending(Ending.RETRIED, first, attempts=1))
        self.assertEqual(self.told(first), (first.token, "1", 1, None, ""))
        [second] = self.claim()
        self.wait_until(lambda: self.present() > earlier, "another instant")
        self.assertTrue(self.save(second, data="2"))
        self.assertEqual(self.told(second), (second.token, "2", 1, None, ""))
        self.assertGreater(self.aware(self.checkpoints[first.job_id].updated_at), earlier)

    def test_the_largest_values_are_stored_as_they_are(self) -> None:
        claim = self.claimed_job()
        data = '"' + "x" * (2**20 - 2) + '"'
        for progress in (
            Progress(LARGEST, LARGEST, "😀" * LONGEST_TEXT), Progress(0, 5e-324), Progress(0.1, 0.3)
        ):  # fmt: skip
            self.assertTrue(self.save(claim, data=data, progress=progress))
            wanted = (claim.token, data, progress.done, progress.total, progress.text)
            self.assertEqual(self.told(claim), wanted)

    def test_whoever_has_lost_its_claim_stores_nothing(self) -> None:
        self.enqueue_many(4)
        lost = self.claim()
        a, b, c, d = lost
        self.save(a, data="1", progress=Progress(1))
        self.settle(
            ending(Ending.RELEASED, a), self.finished(b), self.finished(c, preserve=False),
            self.failed(d),
        )  # fmt: skip
        [again] = self.claim()
        before = self.everything()
        wrong = again._replace(job_id=d.job_id)
        for claim in (*lost, again._replace(token=again.token + 1), wrong):
            self.assertIs(self.save(claim, data="2", progress=Progress(2)), False)
            self.assertIs(self.is_held(claim), False)
        self.assertEqual(self.everything(), before)
        self.assertIs(self.is_held(again), True)
        self.assertTrue(self.save(again, data="3"))

    def test_a_claim_that_ends_meanwhile_is_not_held_any_more(self) -> None:
        """Although the caller's transaction has read it before. Where that keeps all others from
        writing, it still holds the claim."""
        for look in (self.is_held, self.save_something):
            claim = self.claimed_job()
            with self.dialect.transaction(self.connection):
                self.assertIn(claim.job_id, self.ids("Claimed"))
                other = self.begin(partial(self.settle, ending(Ending.RELEASED, claim)))
                wait([other], timeout=1.0)
                ended = other.done()
                self.assertIs(look(claim), not ended)
            self.assertEqual(other.result(timeout=self.patience), {claim.job_id})
            self.rows("Checkpoint").delete()
            self.rows("ReadyExecution").delete()
            self.rows("Job").delete()

    def test_a_claim_does_not_end_before_what_it_stores_is_committed(self) -> None:
        """Else what is stored of a job could outlast it."""
        for look in (self.is_held, self.save_something):
            claim = self.claimed_job()
            deleted = partial(self.settle, self.finished(claim, preserve=False))
            with self.holding(partial(look, claim)):
                other = self.begin(partial(self.again, deleted))
                wait([other], timeout=0.5)
                self.assertFalse(other.done())
            self.assertEqual(other.result(timeout=self.patience), {claim.job_id})
            self.rows("Checkpoint").delete()

    def test_a_checkpoint_commits_with_the_callers_transaction(self) -> None:
        claim = self.claimed_job()
        self.save(claim, data="1")
        with self.assertRaises(Refused), atomic(using=self.using):
            self.save(claim, data="2")
            self.assertEqual(self.elsewhere(lambda: self.told(claim)[1]), "1")
            raise Refused
        self.assertEqual(self.told(claim)[1], "1")
        with atomic(using=self.using):
            self.save(claim, data="3")
        self.assertEqual(self.elsewhere(lambda: self.told(claim)[1]), "3")

    def test_threads_that_store_for_one_job_do_not_fail(self) -> None:
        claim = self.claimed_job()
        stored = self.in_threads([partial(self.save_five, claim, 10 * n) for n in range(4)])
        self.assertEqual(stored, [[True] * 5] * 4)
        self.assertIn(self.told(claim)[1], [f"{10 * n + 4}" for n in range(4)])

    def test_the_first_claim_of_a_job_can_be_told(self) -> None:
        """By the count in its token: a first attempt does not ask for a checkpoint."""
        self.enqueue_many(1)
        [claim] = self.claim()
        self.assertTrue(claim.is_first)
        for outcome in (
            ending(Ending.RELEASED, claim), ending(Ending.RETRIED, claim, attempts=1)
        ):  # fmt: skip
            self.settle(outcome._replace(token=claim.token))
            [claim] = self.claim()
            self.assertFalse(claim.is_first)
        self.settle(self.failed(claim))
        self.assertEqual(self.rows("Job").retry_failed(), 1)
        [claim] = self.claim()
        self.assertFalse(claim.is_first)

    # --- with the outcome

    def test_the_last_progress_is_stored_with_the_outcome(self) -> None:
        self.enqueue_many(5)
        claims = a, b, c, d, e = self.claim()
        self.save(a, data=DATA, progress=Progress(1))
        sequel = Sequel(progress=PROGRESS)
        before = self.present()
        outcomes = [
            self.finished(a), self.failed(b), ending(Ending.RETRIED, c, attempts=1),
            self.finished(d, preserve=False), ending(Ending.RETRIED, e, attempts=1, delay=60.0),
        ]  # fmt: skip
        self.settle(*[each._replace(sequel=sequel) for each in outcomes])
        for claim in claims:
            if claim is not d:
                self.assertEqual(self.told(claim)[2:], (3, 4.5, PROGRESS.text))
                self.assertEqual(self.told(claim)[0], claim.token)
                instant = self.aware(self.checkpoints[claim.job_id].updated_at)
                self.assert_between(before, instant, self.present())
        self.assertEqual(self.told(a)[1], DATA)
        self.assertNotIn(d.job_id, self.checkpoints)

    def test_a_checkpoint_ends_with_the_success_of_its_job(self) -> None:
        """Progress is kept as long as the job. Others keep what they have stored."""
        self.enqueue_many(5)
        a, b, c, d, e = self.claim()
        for claim in (a, b, c, d, e):
            self.save(claim, data=DATA)
        self.save(a, progress=PROGRESS)
        ends = Sequel(ends_checkpoint=True)
        self.settle(
            self.finished(a, sequel=ends), self.finished(b, sequel=ends),
            self.finished(c, preserve=False, sequel=ends), self.failed(d, sequel=ends),
            self.finished(e),
        )  # fmt: skip
        self.assertEqual(sorted(self.checkpoints), [a.job_id, d.job_id, e.job_id])
        self.assertEqual(self.told(a), (a.token, None, 3, 4.5, PROGRESS.text))
        self.assertEqual((self.told(d)[1], self.told(e)[1]), (DATA, DATA))

    def test_of_a_claim_that_is_lost_no_progress_is_stored(self) -> None:
        self.enqueue_many(2)
        a, b = self.claim()
        self.save(a, data=DATA, progress=Progress(1))
        before = self.everything()
        entailed = Sequel(progress=PROGRESS, ends_checkpoint=True)
        lost = self.finished(a, sequel=entailed)._replace(token=a.token + 1)
        self.assertEqual(self.settle(lost), set())
        self.assertEqual(self.everything(), before)
        self.assertEqual(self.settle(lost, self.finished(b, sequel=entailed)), {b.job_id})
        self.assertEqual(self.told(a), (a.token, DATA, 1, None, ""))

    def test_the_end_of_a_job_and_its_last_progress_are_one_transaction(self) -> None:
        claim = self.claimed_job()
        self.save(claim, data=DATA)
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            entailed = Sequel(progress=PROGRESS, ends_checkpoint=True)
            self.settle(self.finished(claim, sequel=entailed))
            raise Refused
        self.assertEqual(self.everything(), before)

    def test_what_is_stored_goes_with_a_job_that_is_discarded(self) -> None:
        self.enqueue_many(2)
        a, b = self.claim()
        self.save(a, data=DATA)
        self.save(b, data=DATA)
        self.settle(ending(Ending.RETRIED, a, attempts=1, delay=60.0), self.failed(b))
        self.assertEqual(self.rows("Job").filter(pk=a.job_id).discard(), 1)
        self.assertEqual(sorted(self.checkpoints), [b.job_id])
