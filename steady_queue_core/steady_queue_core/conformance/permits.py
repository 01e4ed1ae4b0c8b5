"""Permits: how many jobs of a key are ready or running, and which is next."""

from __future__ import annotations

from concurrent.futures import wait
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.records import ClaimedJob, NewJob
from .base import ConformanceCase, ending, limited_job, new_job
from .running import RunningJobs
from .transactions import Refused

HOUR = timedelta(hours=1)


class PermitCases(ConformanceCase):
    def tearDown(self) -> None:
        self.check_permits()
        super().tearDown()

    def due(self, *jobs: NewJob) -> list[int]:
        """Enqueue jobs for later, and make them due."""
        ids = self.enqueue(*jobs)
        for job_id in ids:
            self.make_due(job_id)
        return ids

    def dispatch_all(self) -> int:
        return self.dialect.dispatch(self.connection, 100).moved

    def admit(self, *keys: str) -> int:
        return self.dialect.admit(self.connection, keys or ["key"])

    def holder(self, **fields: Any) -> ClaimedJob:
        """Claim the only ready job; with ``fields``, enqueue it with a limit first."""
        if fields or not self.ids("Ready"):
            self.enqueue(limited_job(**fields))
        [claim] = self.claim(1)
        return claim

    def test_a_job_with_a_limit_takes_a_permit(self) -> None:
        [job_id] = self.enqueue(limited_job("mail", 2, duration=HOUR))
        self.assertEqual((self.ids("Ready"), self.left("mail")), ([job_id], 1))
        self.assertEqual(self.rows("Permit").get(pk=job_id).key, "mail")
        self.assertEqual(self.rows("Semaphore").get().limit, 2)
        job = self.job(job_id)
        self.assertEqual(
            (job.concurrency_key, job.concurrency_limit, job.concurrency_duration),
            ("mail", 2, HOUR),
        )
        self.assertIs(job.concurrency_discards, False)
        [claim] = self.claim()
        self.assertEqual(claim.concurrency_key, "mail")

    def test_a_job_without_a_limit_takes_none(self) -> None:
        plain, _ = self.enqueue(new_job(), limited_job())
        self.assertEqual(self.rows("Permit").filter(pk=plain).count(), 0)
        self.assertEqual(
            {claim.job_id: claim.concurrency_key for claim in self.claim()}[plain], None
        )

    def test_a_job_that_finds_no_permit_is_blocked(self) -> None:
        first, second = (self.enqueue(limited_job(queue_name="mail", rank=-4))[0] for _ in "12")
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([first], [second]))
        row = self.rows("BlockedExecution").get()
        self.assertEqual((row.queue_name, row.rank, row.concurrency_key), ("mail", -4, "key"))
        self.assertEqual(self.left(), 0)

    def test_of_one_enqueue_as_many_are_ready_as_there_are_permits(self) -> None:
        """By rank for each key, in a batch with jobs that have no limit."""
        jobs = [limited_job("a", 2, rank=rank) for rank in (5, 1, 3, 2)]
        ids = self.enqueue(*jobs, new_job(), limited_job("b"), limited_job("b"))
        self.assertEqual(self.ids("Ready"), sorted([ids[1], ids[3], ids[4], ids[5]]))
        self.assertEqual(self.ids("Blocked"), [ids[0], ids[2], ids[6]])
        self.assertEqual((self.left("a"), self.left("b")), (0, 0))

    def test_a_job_of_later_takes_its_permit_when_it_is_due(self) -> None:
        later = [limited_job(delay=HOUR) for _ in range(2)]
        ids = self.enqueue(*later)
        self.assertEqual((self.ids("Scheduled"), self.rows("Permit").count()), (ids, 0))
        for job_id in ids:
            self.make_due(job_id)
        [plain] = self.due(new_job(delay=HOUR))
        self.assertEqual(self.dispatch_all(), 3)
        self.assertEqual(self.ids("Ready"), [ids[0], plain])
        self.assertEqual((self.ids("Blocked"), self.ids("Scheduled")), ([ids[1]], []))
        self.assertEqual(self.left(), 0)

    def test_a_job_that_is_not_to_wait_is_not_stored(self) -> None:
        """Neither alone nor in a batch. A job that finds a permit is stored."""
        [held] = self.enqueue(limited_job(discards=True))
        before = self.everything()
        [new] = self.dialect.enqueue(self.connection, [limited_job(discards=True)])
        self.assertIsNone(new.job_id)
        self.assertEqual(self.everything(), before)
        jobs = [
            new_job(),
            limited_job(discards=True),
            limited_job(),
            limited_job("b", discards=True),
        ]
        stored = [new.job_id for new in self.dialect.enqueue(self.connection, jobs)]
        self.assertEqual((stored[1], self.ids("Blocked")), (None, [stored[2]]))
        self.assertEqual(self.ids("Ready"), [held, stored[0], stored[3]])
        self.assertEqual(self.rows("Job").count(), 4)

    def test_a_job_of_later_that_is_not_to_wait_is_deleted_when_it_is_due(self) -> None:
        [held] = self.enqueue(limited_job())
        first, second = self.due(limited_job(discards=True, delay=HOUR), limited_job(delay=HOUR))
        self.assertEqual(self.dispatch_all(), 2)
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([held], [second]))
        self.assertEqual(self.rows("Job").filter(pk=first).count(), 0)

    def test_a_job_of_later_whose_token_is_of_no_claim_has_not_run(self) -> None:
        """A token can grow without a claim: it counts the claims in its high bits."""
        [held] = self.enqueue(limited_job())
        [later] = self.due(limited_job(discards=True, delay=HOUR))
        self.rows("ScheduledExecution").filter(pk=later).update(token=1)
        self.assertEqual(self.dispatch_all(), 1)
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([held], []))

    def test_a_permit_ends_with_its_claim(self) -> None:
        """With every ending. Blocked jobs are admitted by rank and id."""
        claim = self.holder()
        ids = self.enqueue(*[limited_job(rank=rank) for rank in (3, -1, 3, 3, 3)])
        order = [ids[1], ids[0], *ids[2:]]
        endings: list[tuple[Ending, dict[str, Any]]] = [
            (Ending.FINISHED, {}),
            (Ending.FINISHED, {"preserve": False}),
            (Ending.FAILED, {"exception_class": "a.B"}),
            (Ending.RETRIED, {"delay": 60.0}),
            (Ending.FINISHED, {}),
        ]
        for (how, fields), following in zip(endings, order, strict=True):
            self.settle(ending(how, claim, attempts=1, **fields))
            self.assertEqual((self.ids("Ready"), self.left()), ([following], 0))
            claim = self.holder()
        self.settle(self.finished(claim))
        self.assertEqual((self.left(), self.rows("Permit").count()), (1, 0))

    def test_the_next_one_is_claimed_with_the_same_call(self) -> None:
        claim = self.holder()
        [following] = self.enqueue(limited_job())
        held, claims = self.settle_and_claim(self.finished(claim), process_id=self.register())
        self.assertEqual((held, [each.job_id for each in claims]), ({claim.job_id}, [following]))

    def test_a_claim_that_was_lost_ends_no_permit(self) -> None:
        claim = self.holder()
        self.enqueue(limited_job())
        before = self.everything()
        self.assertEqual(self.settle(self.finished(claim)._replace(token=claim.token + 1)), set())
        self.assertEqual(self.everything(), before)

    def test_a_job_given_back_keeps_its_permit(self) -> None:
        """Even if a job of a smaller rank waits."""
        claim = self.holder()
        [waiting] = self.enqueue(limited_job(rank=-9))
        self.settle(ending(Ending.RELEASED, claim))
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([claim.job_id], [waiting]))
        self.assertEqual(self.holder().job_id, claim.job_id)

    def test_a_job_given_back_without_a_permit_waits_for_one(self) -> None:
        claim = self.holder()
        [waiting] = self.enqueue(limited_job(rank=-9))
        self.rows("Permit").filter(pk=claim.job_id).delete()
        self.assertEqual(self.admit(), 1)
        self.settle(ending(Ending.RELEASED, claim))
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([waiting], [claim.job_id]))
        self.assertEqual(self.rows("BlockedExecution").get().token, claim.token)

    def test_a_job_that_is_tried_again_takes_a_permit_anew(self) -> None:
        """At once or later, and waits for it even if its limit discards."""
        claim = self.holder(discards=True)
        [urgent] = self.enqueue(limited_job(rank=-9))
        self.settle(ending(Ending.RETRIED, claim, attempts=1))
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([urgent], [claim.job_id]))
        self.settle(self.finished(self.holder()))
        [again] = self.claim()
        self.assertEqual(again.job_id, claim.job_id)
        self.assertGreater(again.token, claim.token)
        self.settle(ending(Ending.RETRIED, again, attempts=2, delay=60.0))
        [other] = self.enqueue(limited_job())
        self.make_due(claim.job_id)
        self.assertEqual(self.dispatch_all(), 1)
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), ([other], [claim.job_id]))

    def test_admit_lets_in_whom_there_are_permits_for(self) -> None:
        """It also corrects the value of the semaphore."""
        ids = self.enqueue(*[limited_job(to=2, rank=-number) for number in range(6)])
        self.assertEqual(self.admit(), 0)
        self.rows("Permit").all().delete()
        self.rows("ReadyExecution").all().delete()
        self.rows("Job").filter(pk__in=ids[4:]).delete()
        self.rows("Semaphore").update(value=1)
        self.assertEqual(self.admit("key", "unknown"), 2)
        self.assertEqual((self.ids("Ready"), self.ids("Blocked")), (ids[2:4], ids[:2]))
        self.assertEqual(self.left(), 0)
        self.assertEqual(self.rows("Semaphore").count(), 1)

    def test_a_rollback_gives_the_permit_back(self) -> None:
        with self.assertRaises(Refused), atomic(using=self.using):
            self.enqueue(limited_job(), limited_job())
            self.enqueue(limited_job())
            raise Refused
        ids = self.enqueue(limited_job())
        self.assertEqual((self.ids("Ready"), self.left()), (ids, 0))

    def test_who_comes_while_the_holder_ends_is_not_left_waiting(self) -> None:
        """The enqueue found no permit, and is not committed yet when the claim ends."""
        claim = self.holder()
        with self.holding(lambda: self.enqueue(limited_job())) as end:
            ended = self.begin(lambda: self.again(lambda: self.settle(self.finished(claim))))
            wait([ended], timeout=0.2)  # As far as it comes.
            end(commit=True)
        self.assertEqual(ended.result(self.patience), {claim.job_id})
        self.assertEqual((len(self.ids("Ready")), self.ids("Blocked")), (1, []))

    def test_who_comes_before_the_end_is_committed_is_not_left_waiting(self) -> None:
        claim = self.holder()
        with self.holding(lambda: self.settle(self.finished(claim))) as end:
            enqueued = self.begin(lambda: self.again(lambda: self.enqueue(limited_job())))
            wait([enqueued], timeout=0.2)
            end(commit=True)
        ids = enqueued.result(self.patience)
        self.assertEqual(self.ids("Ready"), ids)

    def test_of_many_threads_as_many_are_let_in_as_there_are_permits(self) -> None:
        """Also with the first jobs of a key."""

        def enqueue() -> list[int]:
            return [self.again(lambda: self.enqueue(limited_job(to=3)))[0] for _ in range(3)]

        ids = [job_id for some in self.in_threads([enqueue] * 4) for job_id in some]
        self.assertEqual((len(self.ids("Ready")), len(self.ids("Blocked"))), (3, len(ids) - 3))

    def test_no_more_run_at_once_than_the_limits_allow(self) -> None:
        """With several keys, and claims that several threads end in any order."""
        limits = {"a": 1, "b": 2, "c": 3}
        keys = sorted(limits) * 8
        self.enqueue(*[limited_job(key, limits[key]) for key in keys])
        running, worker = RunningJobs(limits), self.register()

        def work() -> None:
            for _ in self.until_deadline():
                if len(running.started) >= len(keys):
                    return
                claims = self.again(lambda: self.claim(3, process_id=worker))
                with running.block(*claims):
                    self.rows("Job").count()  # Time for others.
                ended = [self.finished(claim) for claim in reversed(claims)]
                self.again(partial(self.settle, *ended))

        self.in_threads([work] * 3)
        jobs = self.rows("Job").values_list("pk", flat=True)
        self.assertEqual(sorted(running.started), sorted(jobs))
        self.assertEqual({key: self.left(key) for key in limits}, limits)
