"""The steps of jobs: what attempts store of them, and what becomes of it with the outcome."""

from __future__ import annotations

from concurrent.futures import wait
from functools import partial
from typing import Any

from django.db.transaction import atomic

from ..dialects.held_rows import StepRecord
from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob
from ..dialects.sequel import Sequel
from .base import ConformanceCase, ending
from .transactions import Refused

DATA = '{"paid":17,"name":"\\u00c5sa \\\\ \'x\' %s"}'
#: Names that careless comparisons take for one.
ALIKE = ("a", "A", "á", "a ", "ß", "ss", "😀", "%s", "x" * 255)


class StepCases(ConformanceCase):
    def take(self, claim: ClaimedJob, name: str = "charge", **changes: Any) -> bool:
        """Store a step; ``changes``: what is special about it."""
        step = StepRecord(claim.job_id, claim.token, name, 0, is_sleep=False, data=DATA)
        return self.dialect.save_step(self.connection, step._replace(**changes))

    def take_five(self, claim: ClaimedJob, first: int) -> list[bool]:
        numbers = range(first, first + 5)
        return [
            self.again(partial(self.take, claim, f"step {number}", position=number))
            for number in numbers
        ]

    @property
    def steps(self) -> list[tuple[Any, ...]]:
        """What is stored of all steps, in their order."""
        rows = self.rows("Step").order_by("job_id", "position", "name")
        return list(rows.values_list(*StepRecord._fields))

    def test_a_step_is_stored_while_the_claim_is_held(self) -> None:
        self.enqueue_many(3)
        a, b, _ = self.claim()
        before = self.present()
        self.assertIs(self.take(a), True)
        self.assertIs(self.take(a, "nap", position=1, is_sleep=True, data="1"), True)
        self.assertIs(self.take(b, position=2), True)
        self.assertEqual(
            self.steps,
            [
                (a.job_id, a.token, "charge", 0, False, DATA),
                (a.job_id, a.token, "nap", 1, True, "1"),
                (b.job_id, b.token, "charge", 2, False, DATA),
            ],
        )
        for row in self.rows("Step"):
            self.assert_between(before, self.aware(row.stored_at), self.present())

    def test_names_of_steps_are_compared_exactly(self) -> None:
        claim = self.claimed_job()
        for position, name in enumerate(ALIKE):
            self.assertTrue(self.take(claim, name, position=position))
        self.assertEqual([step[2] for step in self.steps], list(ALIKE))

    def test_a_step_that_is_stored_again_replaces_the_former(self) -> None:
        """As after a connection that was lost before its answer."""
        first = self.claimed_job()
        self.take(first)
        earlier = self.aware(self.rows("Step").get().stored_at)
        self.settle(ending(Ending.RETRIED, first, attempts=1))
        [second] = self.claim()
        self.wait_until(lambda: self.present() > earlier, "another instant")
        self.assertTrue(self.take(second, position=1, is_sleep=True, data="2"))
        self.assertEqual(self.steps, [(second.job_id, second.token, "charge", 1, True, "2")])
        self.assertGreater(self.aware(self.rows("Step").get().stored_at), earlier)

    def test_the_largest_steps_are_stored_as_they_are(self) -> None:
        claim = self.claimed_job()
        data = '"' + "x" * (2**20 - 2) + '"'
        self.assertTrue(self.take(claim, "😀" * 255, position=2**31 - 1, data=data))
        wanted = (claim.job_id, claim.token, "😀" * 255, 2**31 - 1, False, data)
        self.assertEqual(self.steps, [wanted])

    def test_whoever_has_lost_its_claim_stores_no_step(self) -> None:
        self.enqueue_many(4)
        lost = self.claim()
        a, b, c, d = lost
        self.take(a)
        self.settle(
            ending(Ending.RELEASED, a), self.finished(b), self.finished(c, preserve=False),
            self.failed(d),
        )  # fmt: skip
        [again] = self.claim()
        before = self.everything()
        wrong = again._replace(job_id=d.job_id)
        for claim in (*lost, again._replace(token=again.token + 1), wrong):
            for name in ("charge", "ship"):
                self.assertIs(self.take(claim, name, data="2"), False)
        self.assertEqual(self.everything(), before)
        self.assertTrue(self.take(again, "ship"))

    def test_of_a_claim_that_ends_meanwhile_no_step_is_stored(self) -> None:
        """Although the caller's transaction has read it before. Where that keeps all others from
        writing, it still holds the claim."""
        claim = self.claimed_job()
        with self.dialect.transaction(self.connection):
            self.assertIn(claim.job_id, self.ids("Claimed"))
            other = self.begin(partial(self.settle, ending(Ending.RELEASED, claim)))
            wait([other], timeout=1.0)
            ended = other.done()
            self.assertIs(self.take(claim), not ended)
        self.assertEqual(other.result(timeout=self.patience), {claim.job_id})

    def test_a_claim_does_not_end_before_its_step_is_committed(self) -> None:
        """Else the step could outlast its job."""
        claim = self.claimed_job()
        deleted = partial(self.settle, self.finished(claim, preserve=False))
        with self.holding(partial(self.take, claim)):
            other = self.begin(partial(self.again, deleted))
            wait([other], timeout=0.5)
            self.assertFalse(other.done())
        self.assertEqual(other.result(timeout=self.patience), {claim.job_id})

    def test_a_step_commits_with_the_callers_transaction(self) -> None:
        claim = self.claimed_job()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.take(claim)
            self.assertEqual(self.elsewhere(lambda: self.steps), [])
            raise Refused
        self.assertEqual(self.steps, [])
        with atomic(using=self.using):
            self.take(claim)
        self.assertEqual(len(self.elsewhere(lambda: self.steps)), 1)

    def test_threads_that_take_steps_of_one_job_do_not_fail(self) -> None:
        claim = self.claimed_job()
        stored = self.in_threads([partial(self.take_five, claim, 10 * n) for n in range(4)])
        self.assertEqual(stored, [[True] * 5] * 4)
        self.assertEqual(
            [step[3] for step in self.steps], [10 * n + m for n in range(4) for m in range(5)]
        )

    # --- with the outcome

    def sleeps(self, claim: ClaimedJob, *names: str) -> Sequel:
        """Return what an outcome entails of an attempt that has begun these sleeps."""
        return Sequel(
            sleeps=tuple(
                StepRecord(claim.job_id, claim.token, name, number, is_sleep=True, data="1")
                for number, name in enumerate(names)
            )
        )

    def test_sleeps_are_stored_with_the_outcome(self) -> None:
        self.enqueue_many(4)
        a, b, c, d = self.claim()
        before = self.present()
        outcomes = [
            ending(Ending.RETRIED, a, attempts=0, delay=60.0, sequel=self.sleeps(a, "nap", "b")),
            self.failed(b, sequel=self.sleeps(b, "nap")),
            self.finished(c, sequel=self.sleeps(c, "nap")),
            self.finished(d, preserve=False, sequel=self.sleeps(d, "nap")),
        ]  # fmt: skip
        self.settle(*outcomes)
        self.assertEqual(
            self.steps,
            [
                (a.job_id, a.token, "nap", 0, True, "1"),
                (a.job_id, a.token, "b", 1, True, "1"),
                (b.job_id, b.token, "nap", 0, True, "1"),
            ],
        )
        self.assertEqual(self.ids("Scheduled"), [a.job_id])
        for row in self.rows("Step"):
            self.assert_between(before, self.aware(row.stored_at), self.present())

    def test_of_a_claim_that_is_lost_no_sleep_is_stored(self) -> None:
        self.enqueue_many(2)
        a, b = self.claim()
        before = self.everything()
        lost = ending(Ending.RETRIED, a, attempts=0, delay=60.0, sequel=self.sleeps(a, "nap"))
        lost = lost._replace(token=a.token + 1)
        self.assertEqual(self.settle(lost), set())
        self.assertEqual(self.everything(), before)
        sleeping = ending(Ending.RETRIED, b, attempts=0, delay=60.0, sequel=self.sleeps(b, "nap"))
        self.assertEqual(self.settle(lost, sleeping), {b.job_id})
        self.assertEqual([step[0] for step in self.steps], [b.job_id])

    def test_the_end_of_an_attempt_and_its_sleep_are_one_transaction(self) -> None:
        claim = self.claimed_job()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            sequel = self.sleeps(claim, "nap")
            self.settle(ending(Ending.RETRIED, claim, attempts=0, delay=60.0, sequel=sequel))
            raise Refused
        self.assertEqual(self.everything(), before)

    def test_steps_are_kept_as_long_as_their_job(self) -> None:
        self.enqueue_many(5)
        a, b, c, d, e = self.claim()
        for claim in (a, b, c, d, e):
            self.take(claim)
        ends = Sequel(ends_steps=True)
        self.settle(
            self.finished(a, sequel=ends), self.finished(b, preserve=False, sequel=ends),
            self.failed(c), ending(Ending.RETRIED, d, attempts=1, delay=60.0, sequel=ends),
        )  # fmt: skip
        kept = [a.job_id, c.job_id, d.job_id, e.job_id]
        self.assertEqual([step[0] for step in self.steps], kept)
        self.assertEqual(self.rows("Job").filter(pk__in=[c.job_id, d.job_id]).discard(), 2)
        self.assertEqual([step[0] for step in self.steps], [a.job_id, e.job_id])
