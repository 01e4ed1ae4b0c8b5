"""Members of batches that end with the settlement of their jobs."""

from __future__ import annotations

from functools import partial

from django.db.transaction import atomic

from ..dialects.callbacks import ON_FAILURE, ON_FINISH, ON_SUCCESS
from ..dialects.membership import MemberState
from ..dialects.outcome import Ending
from ..errors import TaskCancelled
from .base import ending
from .batch_rows import BatchRows
from .transactions import Refused

CANCELLED = f"{TaskCancelled.__module__}.{TaskCancelled.__qualname__}"


class SettleMembersCases(BatchRows):
    def test_members_end_as_their_jobs_do(self) -> None:
        self.batch_of(*[False] * 7)
        one, two, three, four, five, six, seven = self.members_claimed()
        stale = self.finished(six._replace(token=six.token + 1))
        held, _ = self.exchange(
            self.finished(one), self.failed(two),
            self.failed(three, exception_class=CANCELLED), self.finished(four, preserve=False),
            ending(Ending.RETRIED, five, attempts=1, delay=60.0), stale,
        )  # fmt: skip
        self.assertEqual(held, {claim.job_id for claim in (one, two, three, four, five)})
        expected = [MemberState.SUCCEEDED, MemberState.FAILED, MemberState.CANCELLED,
                    MemberState.SUCCEEDED, *[MemberState.PENDING] * 3]  # fmt: skip
        found = self.rows("BatchMember").order_by("pk").values_list("state", flat=True)
        self.assertEqual(list(found), expected)
        self.assertEqual(self.ids("Claimed"), [six.job_id, seven.job_id])
        self.assertIsNone(self.rows("JobBatch").get().finished_at)

    def test_members_that_have_ended_stay_as_they_are(self) -> None:
        self.batch_of(False, False)
        first, _ = self.members_claimed()
        self.rows("BatchMember").filter(job_id=first.job_id).update(state=MemberState.DISCARDED)
        self.exchange(self.finished(first))
        self.assertEqual(self.member_states()[first.job_id], MemberState.DISCARDED)

    def test_a_settlement_of_members_claims_as_any_other(self) -> None:
        self.batch_of(*[False] * 6)
        first, second = self.members_claimed(2)
        held, [third, fourth] = self.exchange(self.finished(first), limit=2)
        self.assertEqual(held, {first.job_id})
        self.assertEqual(sorted([second.job_id, third.job_id, fourth.job_id]), self.ids("Claimed"))
        self.assertEqual(third.link, first.link)
        held, claims = self.exchange(ending(Ending.RELEASED, fourth), self.finished(third), limit=1)
        self.assertEqual(held, {third.job_id, fourth.job_id})
        self.assertIn(fourth.job_id, [claim.job_id for claim in claims])

    def test_the_settlement_of_the_last_member_ends_its_batch(self) -> None:
        self.batch_of(False, False)
        first, second = self.members_claimed()
        [other] = self.enqueue_many(1)
        self.assertEqual(self.exchange(self.finished(first))[0], {first.job_id})
        held, claims = self.exchange(self.finished(second), limit=3)
        self.assertEqual(held, {second.job_id})
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])
        self.assertIsNotNone(self.rows("JobBatch").get().finished_at)
        self.assertIn(other, [*self.ids("Claimed"), *(claim.job_id for claim in claims)])
        self.assertIn(ON_FINISH, [claim.queue_name for claim in claims])

    def test_what_a_settlement_leaves_of_a_batch_is_another_one(self) -> None:
        for failing in (False, True):
            batch = self.batch_of(False, False, False)
            first, *others = self.members_claimed()
            self.exchange(self.finished(first))
            last = [self.failed(each) if failing else self.finished(each) for each in others]
            self.assertEqual(self.exchange(*last)[0], {each.job_id for each in others})
            self.assertIsNotNone(self.rows("JobBatch").get(pk=batch).finished_at)
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH, ON_FAILURE, ON_FINISH])

    def test_of_two_batches_the_one_that_ends_does(self) -> None:
        one, two = self.batch_of(False), self.batch_of(False, False)
        first, second, _ = self.members_claimed()
        self.assertEqual(
            self.exchange(self.finished(first), self.finished(second))[0],
            {first.job_id, second.job_id},
        )
        ended = self.rows("JobBatch").exclude(finished_at=None).values_list("pk", flat=True)
        self.assertEqual((list(ended), two > one), ([one], True))

    def test_a_batch_within_a_batch_is_a_member_that_is_left(self) -> None:
        outer = self.batch_of(False, False)
        self.rows("BatchMember").create(batch_id=outer)
        for claim in self.members_claimed():
            self.end_by_exchange(claim)
        self.assertEqual(self.callbacks(), [])
        self.rows("BatchMember").filter(job_id=None).update(state=MemberState.SUCCEEDED)
        self.assertEqual(list(self.member_states().values()), [MemberState.SUCCEEDED] * 3)

    def test_an_open_batch_waits_for_more(self) -> None:
        batch = self.batch_of(False, is_open=True)
        [claim] = self.members_claimed()
        self.assertEqual(self.end_by_exchange(claim), {claim.job_id})
        self.assertEqual(self.member_states(), {claim.job_id: MemberState.SUCCEEDED})
        self.assertIsNone(self.rows("JobBatch").get(pk=batch).finished_at)

    def test_members_with_limits_pass_their_permits_on(self) -> None:
        self.batch_of(True, True, True)
        for _ in range(3):
            [claim] = self.members_claimed()
            self.assertEqual(self.end_by_exchange(claim), {claim.job_id})
            self.check_permits()
        self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH])

    def test_members_pass_their_permits_to_heirs(self) -> None:
        self.batch_of(True, True, True)
        [holder] = self.members_claimed()
        process = self.identity(self.settler)
        for follower in self.dialect.claim_followers(self.connection, process, [holder], 1):
            heir = follower.job_id, follower.token
            self.assertEqual(self.exchange(self.finished(holder, heir=heir))[0], {holder.job_id})
            self.assertEqual(self.rows("Permit").get().job_id, follower.job_id)
            holder = follower
        self.end_by_exchange(holder)
        self.check_permits()
        self.assertEqual(self.member_states()[holder.job_id], MemberState.SUCCEEDED)
        self.assertEqual(self.callbacks(), [])

    def test_members_end_in_the_transaction_of_their_settlement(self) -> None:
        self.batch_of(False, False)
        first, _ = self.members_claimed()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.exchange(self.finished(first))
            raise Refused
        self.assertEqual(self.everything(), before)
        self.assertEqual(set(self.member_states().values()), {MemberState.PENDING})

    def test_settlements_of_the_last_two_members_do_not_overlook_each_other(self) -> None:
        """Each transaction sees the other's member as pending."""
        for number, commits in enumerate((True, False)):
            self.batch_of(False, False)
            first, second = self.members_claimed()
            with self.holding(partial(self.exchange, self.finished(first))) as end:
                other = self.begin(partial(self.end_by_exchange, second))
                end(commit=commits)
            self.assertEqual(other.result(self.patience), {second.job_id})
            if not commits:
                self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH] * number)
                self.end_by_exchange(first)
            self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH] * (number + 1))

    def test_settlements_of_members_at_once_end_their_batch_once(self) -> None:
        for number in range(1, 6):
            self.batch_of(*[False] * 6)
            self.in_threads(
                [partial(self.end_by_exchange, claim) for claim in self.members_claimed()]
            )
            self.assertEqual(self.callbacks(), [ON_SUCCESS, ON_FINISH] * number)
