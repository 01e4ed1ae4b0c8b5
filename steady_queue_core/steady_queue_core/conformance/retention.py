"""How long jobs are kept that say so themselves: stored with their end, or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.sequel import Sequel
from ..features.retention.period import FOREVER, Period
from .base import ConformanceCase, ending
from .transactions import Refused

DAY = timedelta(days=1)


def kept(period: Period) -> Sequel:
    return Sequel(retention=period)


class RetentionCases(ConformanceCase):
    @property
    def retentions(self) -> dict[int, Any]:
        """Until when each job is kept that has a time of its own."""
        rows = self.rows("Retention").values_list("pk", "expires_at")
        return {pk: expires_at and self.aware(expires_at) for pk, expires_at in rows}

    def test_how_long_a_job_is_kept_is_stored_with_its_end(self) -> None:
        """For those that end here; the others end later, or are gone."""
        self.enqueue_many(6)
        a, b, c, d, e, f = self.claim()
        before = self.present()
        self.settle(
            self.finished(a, sequel=kept(DAY)), self.failed(b, sequel=kept(timedelta(0))),
            self.finished(c, sequel=kept(FOREVER)), self.failed(d),
            self.finished(e, preserve=False, sequel=kept(DAY)),
            ending(Ending.RETRIED, f, attempts=1, delay=60.0, sequel=kept(DAY)),
        )  # fmt: skip
        after, found = self.present(), self.retentions
        self.assertEqual(sorted(found), [a.job_id, b.job_id, c.job_id])
        self.assert_between(before + DAY, found[a.job_id], after + DAY)
        self.assert_between(before, found[b.job_id], after)
        self.assertIsNone(found[c.job_id])

    def test_of_a_claim_that_is_lost_nothing_is_kept(self) -> None:
        self.enqueue_many(2)
        a, b = self.claim()
        lost = self.finished(a, sequel=kept(DAY))._replace(token=a.token + 1)
        self.assertEqual(self.settle(lost, self.finished(b, sequel=kept(FOREVER))), {b.job_id})
        self.assertEqual(self.retentions, {b.job_id: None})

    def test_the_end_of_a_job_and_its_time_are_one_transaction(self) -> None:
        self.enqueue_many(1)
        [claim] = self.claim()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.settle(self.finished(claim, sequel=kept(DAY)))
            raise Refused
        self.assertEqual(self.everything(), before)
        self.assertEqual(self.retentions, {})

    def test_a_time_that_was_left_behind_is_replaced(self) -> None:
        self.enqueue_many(2)
        a, b = self.claim()
        for claim in (a, b):
            self.rows("Retention").create(
                job_id=claim.job_id, expires_at=self.stored(self.present())
            )
        self.settle(self.finished(a, sequel=kept(FOREVER)), self.finished(b, sequel=kept(DAY)))
        self.assertIsNone(self.retentions[a.job_id])
        self.assertGreater(self.retentions[b.job_id], self.present())

    def test_a_failed_job_that_is_retried_is_kept_for_no_time_of_its_own(self) -> None:
        self.enqueue_many(1)
        [claim] = self.claim()
        self.settle(self.failed(claim, sequel=kept(DAY)))
        self.assertEqual(self.rows("Job").retry_failed(), 1)
        self.assertEqual(self.retentions, {})
        [again] = self.claim()
        self.settle(self.finished(again))
        self.assertEqual(self.retentions, {})
