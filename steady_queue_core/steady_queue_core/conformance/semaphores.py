"""Missing semaphores and changed limits: no job too many is admitted, and none is forgotten."""

from __future__ import annotations

from datetime import timedelta

from ..dialects.outcome import Ending
from ..dialects.portable import FEW_PERMITS
from ..dialects.records import ClaimedJob
from .base import ConformanceCase, ending, limited_job, new_job

HOUR = timedelta(hours=1)


class SemaphoreCases(ConformanceCase):
    def tearDown(self) -> None:
        self.check_permits()
        super().tearDown()

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

    def test_a_claim_ends_though_the_semaphore_is_gone(self) -> None:
        first, second = self.holders(2)
        self.forget()
        self.assertEqual(self.settle(self.finished(first)), {first.job_id})
        [waiting] = self.enqueue(limited_job(to=1))
        self.forget()
        self.assertEqual(self.settle(self.finished(second)), {second.job_id})
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([waiting], []))

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

    def test_a_larger_limit_lets_in_who_is_not_to_wait(self) -> None:
        """Like a job that would wait, behind those that wait already."""
        self.holders(1)
        [new] = self.enqueue(limited_job(to=2, discards=True))
        self.assertEqual(self.ids("Ready"), [new])
        [waiting] = self.enqueue(limited_job(to=2))
        [last] = self.dialect.enqueue(self.connection, [limited_job(to=3, discards=True)])
        self.assertEqual((last.job_id, self.ids("Ready")), (None, [new, waiting]))

    def test_who_is_let_in_is_claimed_in_its_turn(self) -> None:
        """Also by the call that settles the claim whose permit it takes."""
        [claim] = self.holders(1)
        [last] = self.enqueue(new_job(rank=1))
        [waiting] = self.enqueue(limited_job(rank=-1))
        [first] = self.enqueue(new_job(rank=-2))
        _, claims = self.settle_and_claim(self.finished(claim), process_id=self.register(), limit=2)
        self.assertEqual([each.job_id for each in claims], [first, waiting])
        self.assertEqual(self.ids("Ready"), [last])

    def test_a_larger_limit_lets_more_in(self) -> None:
        """As soon as a job with the new limit is enqueued."""
        ids = [self.enqueue(limited_job())[0] for _ in range(3)]
        [last] = self.enqueue(limited_job(to=3))
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), (ids, [last]))
        self.assertEqual((self.left(), self.rows("Semaphore").get().limit), (0, 3))

    def test_a_smaller_limit_counts_the_permits_that_are_out(self) -> None:
        for _ in range(3):
            self.enqueue(limited_job(to=3))
        claims = self.claim()
        [waiting] = self.enqueue(limited_job(to=1))
        for claim in claims:
            self.assertEqual(self.ids("Blocked"), [waiting])
            self.settle(self.finished(claim))
        self.assertEqual((self.ids("Ready"), self.left()), ([waiting], 0))

    def test_permits_that_are_out_count_however_many_there_are(self) -> None:
        many = FEW_PERMITS + 5
        self.enqueue(*[limited_job(to=many)] * many)
        claims = self.claim(many)
        [waiting] = self.enqueue(limited_job(to=many - 2))
        for claim in claims[:3]:
            self.assertEqual(self.ids("Blocked"), [waiting])
            self.settle(self.finished(claim))
            self.check_permits()
        self.assertEqual((self.ids("Ready"), self.left()), ([waiting], 0))

    def test_a_changed_limit_counts_for_permits_that_are_left(self) -> None:
        """Also for a job that must not wait."""
        self.settle(*map(self.finished, self.holders(1)))
        ids = self.enqueue(limited_job(to=3, discards=True))
        self.assertEqual((self.ids("Ready"), self.left()), (ids, 2))
        ids += self.enqueue(limited_job(to=2, discards=True))
        self.assertEqual((self.ids("Ready"), self.left()), (ids, 0))

    def test_a_semaphore_that_is_missing_has_the_limit_of_who_waits(self) -> None:
        ids = self.enqueue(*[limited_job(to=2) for _ in range(4)])
        self.forget()
        self.settle(*[self.finished(claim) for claim in self.claim()])
        self.dialect.admit(self.connection, ["key"])
        self.assertEqual((self.ids("Ready"), self.left()), (ids[2:], 0))
