"""Ending claims that are no longer held: nothing may change."""

from __future__ import annotations

from functools import partial
from threading import Barrier

from django.db.transaction import atomic

from ..dialects.outcome import Ending, Outcome
from ..dialects.records import ClaimedJob
from .base import ConformanceCase, ending, new_job


class SettleFenceCases(ConformanceCase):
    def every_ending(self, claim: ClaimedJob) -> list[Outcome]:
        """Return all the ways in which ``claim`` may end."""
        late = {"attempts": 7, "errors": "late", "worker_ids": "late"}
        return [
            self.finished(claim, return_value="late", **late),
            self.finished(claim, preserve=False),
            self.failed(claim, **late),
            ending(Ending.RETRIED, claim, **late),
            ending(Ending.RETRIED, claim, delay=60.0, **late),
            ending(Ending.RELEASED, claim),
        ]

    def assert_nothing_changes(self, *outcomes: Outcome) -> None:
        before = self.everything()
        for outcome in outcomes:
            self.assertEqual(self.settle(outcome), set(), outcome)
            self.assertEqual(self.everything(), before, outcome)
        self.assertEqual(self.settle(*outcomes[:1]), set())

    def test_a_token_that_is_not_the_claims_changes_nothing(self) -> None:
        claim = self.claimed_job()
        for token in (claim.token - 1, claim.token + 1):
            self.assert_nothing_changes(*self.every_ending(claim._replace(token=token)))
        self.assertEqual(self.ids("Claimed"), [claim.job_id])

    def test_an_outcome_of_an_earlier_claim_changes_nothing(self) -> None:
        """The job was released and runs elsewhere now."""
        old = self.claimed_job()
        self.settle(ending(Ending.RELEASED, old))
        self.assert_nothing_changes(*self.every_ending(old))
        [new] = self.claim()
        self.assert_nothing_changes(*self.every_ending(old))
        self.assertEqual(self.settle(self.finished(new)), {new.job_id})

    def test_an_outcome_of_an_earlier_life_of_the_database_changes_nothing(self) -> None:
        """The database was restored or failed over, and another job has the same id."""
        ids = self.enqueue_many(20)
        worker = self.register()
        with atomic(using=self.using):
            earlier = self.claim(process_id=worker)
            self.connection.set_rollback(True)
        claims = self.claim(process_id=worker)
        self.assertEqual([claim.job_id for claim in claims], [claim.job_id for claim in earlier])
        self.assert_nothing_changes(*self.every_ending(earlier[0]))
        self.assertEqual(self.settle(*[self.finished(claim) for claim in earlier]), set())
        self.assertEqual(self.ids("Claimed"), ids)
        self.assertEqual(self.settle(*[self.finished(claim) for claim in claims]), set(ids))

    def test_an_outcome_of_a_job_that_has_ended_changes_nothing(self) -> None:
        self.enqueue(*[new_job(max_attempts=9) for _ in range(6)])
        claims = self.claim()
        for claim, first in zip(claims, range(6), strict=True):
            self.assertEqual(self.settle(self.every_ending(claim)[first]), {claim.job_id})
            self.assert_nothing_changes(*self.every_ending(claim))

    def test_an_outcome_of_a_job_that_nobody_claimed_changes_nothing(self) -> None:
        claim = self.claimed_job()
        [ready] = self.enqueue_many(1)
        for job_id in (ready, ready + 1000):
            for token in (0, 1):
                other = claim._replace(job_id=job_id, token=token)
                self.assert_nothing_changes(*self.every_ending(other))

    def test_a_batch_tells_which_claims_were_held(self) -> None:
        """Stale outcomes do not affect the others."""
        self.enqueue_many(3)
        a, b, c = self.claim()
        stale = b._replace(token=b.token + 1)
        held = self.settle(self.finished(stale), self.finished(a), self.failed(c))
        self.assertEqual(held, {a.job_id, c.job_id})
        self.assertEqual(self.ids("Claimed"), [b.job_id])

    def test_of_two_outcomes_of_a_job_the_one_with_the_token_counts(self) -> None:
        old = self.claimed_job()
        self.settle(ending(Ending.RELEASED, old))
        [new] = self.claim()
        held = self.settle(
            self.failed(old), self.finished(new, return_value="new"),
            self.finished(old, return_value="old"),
        )  # fmt: skip
        self.assertEqual(held, {new.job_id})
        self.assertEqual(self.job(new.job_id).return_value, "new")

    def test_of_many_threads_that_settle_a_claim_one_holds_it(self) -> None:
        claim = self.claimed_job()
        together = Barrier(5, timeout=self.patience)

        def settle(outcome: Outcome) -> set[int]:
            together.wait()
            return self.again(lambda: self.settle(outcome))

        outcomes = self.every_ending(claim)[:5]
        held = self.in_threads([partial(settle, outcome) for outcome in outcomes])
        self.assertEqual(sorted(held, key=len), [set()] * 4 + [{claim.job_id}])
