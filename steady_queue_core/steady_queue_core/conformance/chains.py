"""Chains: which blocked jobs follow a claimed one, and where its permit goes when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import zip_longest
from time import monotonic
from typing import Any
from unittest import SkipTest

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob, NewJob
from .base import ConformanceCase, ending, limited_job
from .running import RunningJobs
from .transactions import Refused

#: How the job at the head of a chain may end.
ENDINGS: tuple[tuple[Ending, dict[str, Any]], ...] = (
    (Ending.FINISHED, {}),
    (Ending.FINISHED, {"preserve": False}),
    (Ending.FAILED, {"exception_class": "a.B"}),
    (Ending.RETRIED, {"delay": 60.0}),
    (Ending.RETRIED, {}),
)


def heir(claim: ClaimedJob) -> tuple[int, int]:
    return claim.job_id, claim.token


class ChainCases(ConformanceCase):
    @cached_property
    def worker(self) -> int:
        """The id of a process."""
        return self.register()

    def claimed_holders(self, *jobs: NewJob) -> list[ClaimedJob]:
        """Enqueue jobs, and claim those that are ready."""
        self.enqueue(*jobs)
        return self.claim(process_id=self.worker)

    def follow(self, holders: Sequence[ClaimedJob], limit: int = 10) -> list[ClaimedJob]:
        return self.claim_followers(holders, self.worker, limit)

    def chain(self, number: int = 3, **fields: Any) -> list[ClaimedJob]:
        """Return the claims of a chain: a holder and those that follow it."""
        holders = self.claimed_holders(limited_job(**fields))
        self.enqueue(*[limited_job(**fields) for _ in range(number - 1)])
        return [*holders, *self.follow(holders)]

    def end_all(self) -> None:
        """Run and end what is ready until nothing is."""
        while ready := self.claim(process_id=self.worker):
            self.settle(*map(self.finished, ready))

    @property
    def permit_ids(self) -> list[int]:
        return sorted(self.rows("Permit").values_list("pk", flat=True))

    def test_jobs_that_wait_follow_the_holder_in_their_order(self) -> None:
        """As many as wanted, by rank and id. They are claimed without permits."""
        holders = self.claimed_holders(limited_job())
        ids = self.enqueue(*[limited_job(rank=rank) for rank in (3, -1, 3, 3)])
        order = [ids[1], ids[0], ids[2]]
        claims = self.follow(holders, 3)
        self.assertEqual([claim.job_id for claim in claims], order)
        before = [holders[0].job_id, *order]
        self.assertEqual([claim.follows for claim in claims], before[:3])
        self.assertEqual((self.ids("Blocked"), self.ids("Ready")), (ids[3:], []))
        self.assertEqual(self.permit_ids, [holders[0].job_id])
        rows = self.rows("ClaimedExecution").filter(process_id=self.worker)
        tokens = {claim.job_id: claim.token for claim in (*holders, *claims)}
        self.assertEqual(dict(rows.values_list("pk", "token")), tokens)

    def test_the_claim_of_a_follower_tells_as_much_as_any(self) -> None:
        holders = self.claimed_holders(limited_job())
        job = limited_job(queue_name="default", rank=2, arguments='{"é": "%s"}', max_attempts=4)
        job_id, enqueued_at = self.enqueue_one(job)
        before = self.present()
        [claim] = self.follow(holders)
        self.assert_between(before, claim.claimed_at, self.present())
        self.assertGreater(claim.token, 0)
        self.assertEqual(
            claim._replace(claimed_at=enqueued_at),
            ClaimedJob(
                job_id=job_id, token=claim.token, queue_name="default", rank=2,
                task_path="conformance.tasks.work", backend_name="default",
                arguments='{"é": "%s"}', attempts=0, max_attempts=4, worker_ids=None, errors=None,
                enqueued_at=enqueued_at, started_at=None, claimed_at=enqueued_at,
                concurrency_key="key", follows=holders[0].job_id,
            ),
        )  # fmt: skip

    def test_a_job_of_another_queue_ends_the_chain(self) -> None:
        holders = self.claimed_holders(limited_job())
        first, other, last = self.enqueue(
            limited_job(), limited_job(queue_name="mail"), limited_job()
        )
        self.assertEqual([claim.job_id for claim in self.follow(holders)], [first])
        self.assertEqual(self.ids("Blocked"), [other, last])

    def test_nobody_follows_in_a_paused_queue(self) -> None:
        holders = self.claimed_holders(limited_job())
        [waiting] = self.enqueue(limited_job())
        self.pause("default")
        self.assertEqual(self.follow(holders), [])
        self.assertEqual(self.ids("Blocked"), [waiting])

    def test_nobody_follows_a_job_that_has_lost_its_claim_or_its_permit(self) -> None:
        holders = self.claimed_holders(limited_job())
        [waiting] = self.enqueue(limited_job())
        [holder] = holders
        self.assertEqual(self.follow([holder._replace(token=holder.token + 1)]), [])
        self.rows("Permit").all().delete()
        self.assertEqual(self.follow(holders), [])
        self.assertEqual(self.ids("Blocked"), [waiting])
        self.dialect.admit(self.connection, ["key"])
        self.followers.add(holder.job_id)  # Another one has its permit now.

    def test_nobody_follows_the_claim_of_another_process(self) -> None:
        [holder] = self.claimed_holders(limited_job())
        [waiting] = self.enqueue(limited_job())
        self.__dict__["worker"] = self.register()
        self.assertEqual(self.follow([holder]), [])
        self.assertEqual(self.ids("Blocked"), [waiting])

    def test_nobody_follows_while_there_are_more_permits_than_the_limit(self) -> None:
        holders = self.claimed_holders(limited_job(to=2), limited_job(to=2))
        [waiting] = self.enqueue(limited_job(to=1))
        self.assertEqual(self.follow(holders), [])
        self.settle(self.finished(holders.pop()))
        self.assertEqual([claim.job_id for claim in self.follow(holders)], [waiting])

    def test_nobody_waits_for_who_has_locked_the_semaphore(self) -> None:
        holders = self.claimed_holders(limited_job(), limited_job("other"))
        ids = self.enqueue(limited_job(), limited_job("other"))
        if not self.dialect.info.skips_locked:
            raise SkipTest("DialectInfo.skips_locked is false")
        with self.holding(lambda: self.enqueue(limited_job())) as end:
            began = monotonic()
            self.assertEqual([claim.job_id for claim in self.follow(holders)], ids[1:])
            self.assertLess(monotonic() - began, self.patience / 3)
            end(commit=False)
        self.assertEqual([claim.job_id for claim in self.follow(holders)], ids[:1])

    def test_jobs_follow_several_holders_in_turn(self) -> None:
        holders = self.claimed_holders(limited_job(to=2), limited_job(to=2))
        ids = self.enqueue(*[limited_job(to=2) for _ in range(6)])
        claims = self.follow(holders, 2)
        self.assertEqual([claim.job_id for claim in claims], ids[:4])
        heads = [holder.job_id for holder in holders]
        self.assertEqual([claim.follows for claim in claims], [*heads, *ids[:2]])
        self.assertEqual(self.permit_ids, heads)

    def test_each_key_has_a_chain_of_its_own(self) -> None:
        """Also keys that differ in case only. Jobs without a limit have none."""
        keys = ["a", "A", "é", "z", "none"]
        holders = self.claimed_holders(*[limited_job(key) for key in keys])
        waiting = {key: self.enqueue(*[limited_job(key)] * 2) for key in keys[:4]}
        [plain] = self.claimed_holders(limited_job("plain"))
        claims = self.follow([*holders, plain._replace(concurrency_key=None)], 5)
        found: dict[str | None, list[int]] = {}
        for claim in claims:
            found.setdefault(claim.concurrency_key, []).append(claim.job_id)
        self.assertEqual(found, waiting)

    def test_a_stray_row_ends_the_chain(self) -> None:
        """Of a job that is gone, that has ended, or that runs."""
        holders = self.claimed_holders(limited_job())
        first, second = self.enqueue(limited_job(), limited_job())
        self.rows("Job").filter(pk=first).update(finished_at=self.stored(self.present()))
        self.assertEqual(self.follow(holders), [])
        row = self.rows("BlockedExecution").filter(pk=first).values().get()
        del row["concurrency_key"]
        self.rows("Job").filter(pk=first).update(finished_at=None)
        running = self.rows("ClaimedExecution").create(**row, process_id=self.worker)
        self.assertEqual(self.follow(holders), [])
        running.delete()
        self.rows("Job").filter(pk=first)._raw_delete(self.using)
        self.assertEqual(self.follow(holders), [])
        self.assertEqual(self.ids("Blocked"), [first, second])
        self.rows("BlockedExecution").filter(pk=first).delete()

    def test_followers_are_claimed_in_the_callers_transaction(self) -> None:
        holders = self.claimed_holders(limited_job())
        self.enqueue(limited_job())
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.assertEqual(len(self.follow(holders)), 1)
            raise Refused
        self.assertEqual(self.everything(), before)

    def test_a_permit_passes_to_the_heir(self) -> None:
        """With every ending, and nobody else is let in."""
        for how, fields in ENDINGS:
            first, second, third = self.chain()
            [waiting] = self.enqueue(limited_job())
            outcome = ending(how, first, attempts=1, heir=heir(second), **fields)
            self.assertEqual(self.settle(outcome), {first.job_id})
            self.assertEqual((self.permit_ids, self.ids("Ready")), ([second.job_id], []))
            self.assertEqual(self.ids("Claimed"), [second.job_id, third.job_id])
            self.assertIn(waiting, self.ids("Blocked"))
            both = [self.finished(second), self.finished(third)]
            self.assertEqual(self.settle(*both), {second.job_id, third.job_id})
            self.end_all()
            self.assertEqual(self.permit_ids, [])

    def test_of_a_batch_only_the_holders_permit_passes(self) -> None:
        """Also with the same call that claims."""
        first, second, third, last = self.chain(4)
        other = self.claimed_holders(limited_job("other"))
        [ready] = self.enqueue(limited_job("another"))
        outcomes = [self.finished(each, heir=heir(last)) for each in (first, second, third)]
        held, claims = self.settle_and_claim(*outcomes, process_id=self.worker)
        self.assertEqual(held, {first.job_id, second.job_id, third.job_id})
        self.assertEqual([claim.job_id for claim in claims], [ready])
        self.assertEqual(self.permit_ids, [last.job_id, other[0].job_id, ready])

    def test_a_permit_ends_if_the_heir_has_lost_its_claim(self) -> None:
        """Whoever waits is let in instead."""
        first, second, _ = self.chain()
        self.settle(ending(Ending.RELEASED, second))
        self.assertEqual(self.ids("Blocked"), [second.job_id])
        self.settle(self.finished(first, heir=heir(second)))
        self.assertEqual((self.permit_ids, self.ids("Ready")), ([second.job_id], [second.job_id]))

    def test_a_claim_that_was_lost_passes_no_permit(self) -> None:
        first, second, _ = self.chain()
        before = self.everything()
        stale = self.finished(first, heir=heir(second))._replace(token=first.token + 1)
        self.assertEqual(self.settle(stale), set())
        self.assertEqual(self.everything(), before)

    def test_an_heir_takes_one_permit_only(self) -> None:
        """The other one ends, and lets in who waits."""
        first, second = self.claimed_holders(limited_job(to=2), limited_job(to=2))
        [waiting] = self.enqueue(limited_job(to=2))
        self.settle(self.finished(first, heir=heir(second)))
        self.assertEqual(self.permit_ids, [second.job_id, waiting])

    def test_an_heir_that_ends_in_the_same_batch_takes_no_permit(self) -> None:
        for how in (Ending.FINISHED, Ending.RELEASED):
            first, second = self.chain(2)
            [waiting] = self.enqueue(limited_job(rank=-1))
            self.settle(self.finished(first, heir=heir(second)), ending(how, second, attempts=1))
            self.assertEqual((self.permit_ids, self.ids("Ready")), ([waiting], [waiting]))
            self.end_all()

    def test_a_follower_given_back_waits_for_a_permit(self) -> None:
        """In its old place. An heir that is given back keeps the permit that it has taken over."""
        first, second, third = self.chain()
        self.settle(ending(Ending.RELEASED, third))
        self.assertEqual((self.ids("Blocked"), self.ids("Ready")), ([third.job_id], []))
        self.settle(self.finished(first, heir=heir(second)))
        self.settle(ending(Ending.RELEASED, second))
        self.assertEqual(self.ids("Ready"), [second.job_id])
        self.assertEqual(self.permit_ids, [second.job_id])
        [again] = self.claim(process_id=self.worker)
        [follower] = self.follow([again])
        self.assertEqual((follower.job_id, follower.follows), (third.job_id, second.job_id))
        self.assertGreater(follower.token, third.token)

    def test_whoever_has_the_claims_of_a_chain_ends_them_in_any_order(self) -> None:
        """As is done for a process that has died. Those that had not started come first again."""
        first, second, third, last = self.chain(4)
        self.settle(ending(Ending.RELEASED, last), ending(Ending.RELEASED, third))
        self.assertEqual(self.ids("Ready"), [])
        self.settle(self.failed(first), ending(Ending.RELEASED, second))
        self.assertEqual(self.ids("Ready"), [second.job_id])
        self.assertEqual(self.ids("Blocked"), [third.job_id, last.job_id])

    def test_chains_of_several_threads_never_exceed_the_limits(self) -> None:
        """Each job runs once, under a permit of its key; those of one by one in their order."""
        limits = {"a": 1, "b": 2}
        ids = {key: self.enqueue(*[limited_job(key, to)] * 20) for key, to in limits.items()}
        running, worker = RunningJobs(limits), self.worker

        def work() -> None:
            for _ in self.until_deadline():
                if len(running.started) >= 40:
                    return
                holders = self.again(lambda: self.claim(1, process_id=worker))
                chain = [*holders, *self.again(partial(self.follow, holders, 3))]
                for claim, following in zip_longest(chain, chain[1:]):
                    with running.block(claim):
                        self.rows("Job").count()  # Time for others.
                    to = None if following is None else heir(following)
                    self.again(partial(self.settle, self.finished(claim, heir=to)))

        self.in_threads([work] * 3)
        self.assertEqual([pk for pk in running.started if pk in ids["a"]], ids["a"])
        self.assertEqual(sorted(running.started), ids["a"] + ids["b"])
        self.assertEqual(self.permit_ids, [])
