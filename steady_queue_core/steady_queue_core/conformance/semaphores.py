"""Missing semaphores and changed limits: no job too many is admitted, and none is forgotten."""

from __future__ import annotations

from datetime import timedelta

from ..dialects.outcome import Ending
from ..dialects.queue_selector import QueueSelector
from ..dialects.records import ClaimedJob
from .base import ConformanceCase, ending, limited_job, new_job

HOUR = timedelta(hours=1)


class SemaphoreCases(ConformanceCase):
    def forget(self) -> None:
        """Delete the semaphores, as a manual edit would."""
        self.rows("Semaphore").all().delete()

    def holders(self, count: int) -> list[ClaimedJob]:
        """Claim as many jobs as the limit allows."""
        self.enqueue(*[limited_job(to=count) for _ in range(count)])
        return self.claim()

    def test_a_holder_counts_though_the_semaphore_is_gone(self) -> None:
        """Whichever job comes next."""
        self.holders(1)
        self.forget()
        [new] = self.dialect.enqueue(self.connection, [limited_job(discards=True)])
        self.assertIsNone(new.job_id)
        self.forget()
        ids = self.enqueue(limited_job())
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([], ids))
        self.check_permits()

    def test_a_claim_ends_though_the_semaphore_is_gone(self) -> None:
        first, second = self.holders(2)
        self.forget()
        self.assertEqual(self.settle(self.finished(first)), {first.job_id})
        [waiting] = self.enqueue(limited_job(to=1))
        self.forget()
        self.assertEqual(self.settle(self.finished(second)), {second.job_id})
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([waiting], []))
        self.check_permits()

    def test_who_comes_back_is_let_in_though_the_semaphore_is_gone(self) -> None:
        """Its permit was deleted and, as the last one, the semaphore too."""
        for number, how in enumerate([Ending.RETRIED, Ending.RELEASED]):
            [claim] = self.holders(1) if not number else self.claim()
            self.rows("Permit").all().delete()
            self.forget()
            self.settle(ending(how, claim, attempts=1))
            self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([claim.job_id], []))
            self.check_permits()

    def test_a_job_of_later_says_nothing_of_the_limit_yet(self) -> None:
        self.enqueue(limited_job(to=2), limited_job(to=1, delay=HOUR))
        [other] = self.dialect.enqueue(self.connection, [limited_job(to=9, delay=HOUR)])
        self.assertEqual(self.rows("Semaphore").get().limit, 2)
        self.make_due(other.job_id or 0)
        self.dialect.dispatch(self.connection, 1)
        self.assertEqual((self.rows("Semaphore").get().limit, len(self.ids("Ready"))), (2, 2))
        self.check_permits()

    def test_a_larger_limit_lets_in_who_is_not_to_wait(self) -> None:
        """Like a job that would wait, behind those that wait already."""
        self.holders(1)
        [new] = self.enqueue(limited_job(to=2, discards=True))
        self.assertEqual(self.ids("Ready"), [new])
        [waiting] = self.enqueue(limited_job(to=2))
        [last] = self.dialect.enqueue(self.connection, [limited_job(to=3, discards=True)])
        self.assertEqual((last.job_id, self.ids("Ready")), (None, [new, waiting]))
        self.check_permits()

    def test_who_is_let_in_is_claimed_in_its_turn(self) -> None:
        """Also by the call that settles the claim whose permit it takes."""
        [claim] = self.holders(1)
        [last] = self.enqueue(new_job(rank=1))
        [waiting] = self.enqueue(limited_job(rank=-1))
        [first] = self.enqueue(new_job(rank=-2))
        _, claims = self.dialect.settle_and_claim(
            self.connection,
            [self.finished(claim)],
            self.identity(self.register()),
            QueueSelector(),
            2,
        )
        self.assertEqual([each.job_id for each in claims], [first, waiting])
        self.assertEqual(self.ids("Ready"), [last])
