"""Metadata of jobs, and what else happens in the transaction of an outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.db.transaction import atomic

from ..dialects.outcome import Ending, Outcome
from ..dialects.records import NewJob
from ..dialects.sequel import FollowUp, Sequel
from .base import ConformanceCase, ending, limited_job, new_job
from .transactions import Refused

METADATA = '{"user":{"order":17,"name":"\\u00c5sa \\\\ \'x\' %s"}}'


def sequel(*jobs: NewJob, metadata: str | None = METADATA) -> Sequel:
    return Sequel(tuple(FollowUp(job) for job in jobs), metadata)


class SequelCases(ConformanceCase):
    def test_a_claim_tells_the_metadata_of_a_job(self) -> None:
        """Whatever else there is about the job, and about those enqueued with it."""
        hour, present = timedelta(hours=1), self.present()
        kinds: list[dict[str, Any]] = [
            {}, {"delay": hour}, {"run_at": present + hour}, {"run_at": present - hour}
        ]  # fmt: skip
        jobs = [new_job(metadata=METADATA, **kind) for kind in kinds]
        jobs += [limited_job(f"key {kind}", metadata=METADATA, **kind) for kind in kinds]
        ids = [job_id for job in jobs for job_id in self.enqueue(job)]
        plain = self.enqueue(new_job(), limited_job("other"))
        ids += self.enqueue(*[job for job in jobs if job.limit is None])
        [without, *others] = self.enqueue(new_job(), *jobs[:1], limited_job("b", metadata=METADATA))
        for job_id in self.ids("Scheduled"):
            self.make_due(job_id)
        self.dialect.dispatch(self.connection, 100)
        claims = {claim.job_id: claim.metadata for claim in self.claim()}
        self.assertEqual(claims, dict.fromkeys([*ids, *others], METADATA)
                         | dict.fromkeys([*plain, without]))  # fmt: skip

    def test_the_claim_of_a_follower_tells_its_metadata(self) -> None:
        worker = self.register()
        self.enqueue(limited_job())
        [job_id] = self.enqueue(limited_job(metadata=METADATA))
        holders = self.claim(process_id=worker)
        found = self.dialect.claim_followers(self.connection, self.identity(worker), holders, 1)
        if not self.dialect.claims_followers:
            self.settle(self.finished(holders[0]))
            found = self.claim()
        self.followers.update(claim.job_id for claim in found)
        self.assertEqual([(each.job_id, each.metadata) for each in found], [(job_id, METADATA)])

    def jobs_that_end(self) -> list[Outcome]:
        """Return the outcomes of jobs that end in all ways but one: a released job has not run."""
        self.enqueue_many(5)
        a, b, c, d, e = self.claim()
        return [
            self.finished(a), self.finished(b, preserve=False), self.failed(c),
            ending(Ending.RETRIED, d, attempts=1),
            ending(Ending.RETRIED, e, attempts=1, delay=60.0),
        ]  # fmt: skip

    def test_the_sequel_of_an_outcome_is_stored(self) -> None:
        hour = timedelta(hours=1)
        follow_ups = [new_job("next"), new_job("later", delay=hour), limited_job()]
        for outcome in self.jobs_that_end():
            before = self.rows("Job").count()
            entailed = sequel(*follow_ups)
            self.assertEqual(self.settle(outcome._replace(sequel=entailed)), {outcome.job_id})
            kept = self.rows("Job").filter(pk=outcome.job_id)
            self.assertEqual(list(kept.values_list("metadata", flat=True)),
                             [] if outcome.deletes_job else [METADATA])  # fmt: skip
            self.assertEqual(self.rows("Job").count(), before + 3 - outcome.deletes_job)
            for each in entailed.follow_ups:
                assert each.stored is not None
                self.assertEqual(self.job(each.stored.job_id or 0).queue_name, each.job.queue_name)
        self.check_permits()

    def test_metadata_that_an_outcome_does_not_change_stay(self) -> None:
        claim = self.claimed_job(new_job(metadata=METADATA))
        self.settle(ending(Ending.RETRIED, claim, attempts=1))
        [claim] = self.claim()
        self.assertEqual(claim.metadata, METADATA)
        self.settle(self.finished(claim, sequel=sequel(new_job(), metadata=None)))
        self.assertEqual(self.job(claim.job_id).metadata, METADATA)

    def test_a_claim_that_is_lost_has_no_sequel(self) -> None:
        """Neither alone nor beside an outcome of the same job whose claim is held."""
        outcomes = [each._replace(sequel=sequel(new_job("late"))) for each in self.jobs_that_end()]
        before = self.everything()
        lost = [each._replace(token=each.token + 1) for each in outcomes]
        for outcome in lost:
            self.assertEqual(self.settle(outcome), set())
            self.assertEqual(self.everything(), before)
        self.assertEqual(self.settle(*lost), set())
        self.assertEqual(self.everything(), before)
        held = [each._replace(sequel=None) for each in outcomes]
        self.assertEqual(self.settle(*lost, *held), {each.job_id for each in held})
        self.assertFalse(self.rows("Job").filter(queue_name="late").exists())
        self.assertFalse(self.rows("Job").exclude(metadata=None).exists())

    def test_an_outcome_and_its_sequel_are_one_transaction(self) -> None:
        """What cannot be stored takes the outcome along, and others see all of it or nothing."""
        self.enqueue_many(2)
        a, b = self.claim()
        before = self.everything()
        with self.assertRaises(DatabaseError):
            refused: Any = new_job("next", arguments=None)
            self.settle(self.finished(a), self.failed(b, sequel=sequel(new_job(), refused)))
        self.assertEqual(self.everything(), before)
        with self.assertRaises(Refused), atomic(using=self.using):
            self.settle(self.finished(a), self.failed(b, sequel=sequel(new_job())))
            self.assertEqual(self.elsewhere(lambda: len(self.ids("Claimed"))), 2)
            self.assertEqual(self.elsewhere(lambda: self.ids("Ready")), [])
            raise Refused
        self.assertEqual(self.everything(), before)

    def test_the_next_claim_may_take_what_an_outcome_entails(self) -> None:
        worker = self.register()
        self.enqueue_many(1)
        [claim] = self.claim(process_id=worker)
        entailed = sequel(new_job("next", metadata=METADATA))
        held, claims = self.settle_and_claim(
            self.finished(claim, sequel=entailed), process_id=worker
        )
        self.assertEqual(held, {claim.job_id})
        self.assertEqual(
            [(each.queue_name, each.metadata) for each in claims], [("next", METADATA)]
        )
