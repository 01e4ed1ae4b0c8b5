"""Unique keys: who gets one, and when it is freed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.transaction import atomic

from .. import arguments
from ..dialects.outcome import Ending
from ..dialects.records import EnqueuedJob, NewJob
from ..dialects.sequel import FollowUp, Sequel
from ..dialects.unique_enqueue import KeyTaken
from ..features.unique.key import EXISTING, FINISHED, NAME, RAISE, REPLACE, STARTED, JobKey
from .base import ConformanceCase, ending, limited_job, new_job
from .transactions import Refused

HOUR = timedelta(hours=1)
NAMES = ("a", "A", "a ", "ä")


def metadata(
    key: str = "a",
    until: str = FINISHED,
    keep: timedelta = timedelta(0),
    on_conflict: str = EXISTING,
) -> str:
    """Return the metadata of a job with a unique key."""
    stored = JobKey(key, until, keep, on_conflict).stored
    return arguments.encode({NAME: stored})


def unique_job(key: str = "a", *, queue: str = "default", **fields: Any) -> NewJob:
    """Return a job with a unique key; ``fields`` are those of ``JobKey``."""
    return new_job(queue, metadata=metadata(key, **fields))


class UniqueKeyCases(ConformanceCase):
    def add(self, *jobs: NewJob) -> list[EnqueuedJob]:
        return self.dialect.enqueue(self.connection, jobs)

    @property
    def owners(self) -> dict[str, int | None]:
        """Return which job has each key."""
        return dict(self.rows("UniqueKey").values_list("key", "job_id"))

    def test_a_key_makes_one_job(self) -> None:
        [first, again] = self.add(unique_job()), self.add(unique_job(queue="other"))
        self.assertEqual(again, [first[0]._replace(is_duplicate=True)])
        self.assertEqual(self.rows("Job").count(), 1)
        self.assertEqual(self.owners, {"a": first[0].job_id})

    def test_keys_that_look_alike_are_two(self) -> None:
        found = [self.add(unique_job(name))[0] for name in NAMES]
        self.assertEqual(self.owners, {name: each.job_id for name, each in zip(NAMES, found)})  # noqa: B905

    def test_a_key_and_its_job_are_one_transaction(self) -> None:
        with self.assertRaises(Refused), atomic(using=self.using):
            self.add(unique_job())
            raise Refused
        self.assertEqual((self.owners, self.rows("Job").count()), ({}, 0))
        self.assertFalse(self.add(unique_job())[0].is_duplicate)

    def test_a_bulk_has_its_jobs_in_their_order(self) -> None:
        [present] = self.add(unique_job("c"))
        found = self.add(*[unique_job(each) for each in "abacba"], new_job())
        ids = [each.job_id for each in found]
        self.assertEqual(ids, [*ids[:2], ids[0], present.job_id, ids[1], ids[0], ids[-1]])
        duplicates = [each.is_duplicate for each in found]
        self.assertEqual(duplicates, [False, False, True, True, True, True, False])
        self.assertEqual(self.rows("Job").count(), 4)

    def test_a_call_that_is_refused_stores_nothing(self) -> None:
        [first] = self.add(unique_job())
        before = self.everything()
        with atomic(using=self.using):
            with self.assertRaises(KeyTaken) as raised:
                self.add(unique_job("b"), unique_job(on_conflict=RAISE))
            [other] = self.add(new_job())  # The transaction stays usable.
        self.assertEqual((raised.exception.job_id, raised.exception.number), (first.job_id, 1))
        self.rows("ReadyExecution").filter(pk=other.job_id).delete()
        self.rows("Job").filter(pk=other.job_id).delete()
        self.assertEqual(self.everything(), before)

    def test_of_many_threads_that_enqueue_a_key_one_makes_the_job(self) -> None:
        for number in range(5):
            found = self.in_threads([lambda: self.add(unique_job(f"{number}"))[0]] * 8)  # noqa: B023
            self.assertEqual(len({each.job_id for each in found}), 1)
            self.assertEqual([each.is_duplicate for each in found].count(False), 1)
        self.assertEqual(self.rows("Job").count(), 5)

    def test_a_key_that_another_transaction_takes_back_is_free(self) -> None:
        with self.holding(lambda: self.add(unique_job())) as end:
            other = self.begin(lambda: self.again(lambda: self.add(unique_job())))
            end(commit=False)
        [new] = other.result(self.patience)
        self.assertFalse(new.is_duplicate)
        self.assertEqual(self.owners, {"a": new.job_id})

    def test_the_end_of_a_job_frees_its_key(self) -> None:
        self.add(*map(unique_job, "abcde"))
        a, b, c, d, e = self.claim()
        self.settle(
            self.finished(a), self.finished(b, preserve=False), self.failed(c),
            ending(Ending.RETRIED, d, attempts=1), ending(Ending.RELEASED, e),
        )  # fmt: skip
        self.assertEqual(self.owners, {"d": d.job_id, "e": e.job_id})

    def test_a_lost_claim_frees_no_key(self) -> None:
        self.add(unique_job())
        [claim] = self.claim()
        self.assertEqual(self.settle(self.finished(claim)._replace(token=claim.token + 1)), set())
        self.assertEqual(self.owners, {"a": claim.job_id})

    def test_the_end_of_a_job_and_of_its_key_are_one_transaction(self) -> None:
        self.add(unique_job())
        [claim] = self.claim()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.settle(self.finished(claim))
            raise Refused
        self.assertEqual(self.everything(), before)

    def test_the_key_of_a_limited_job_is_freed(self) -> None:
        """And the next job of its limit may run."""
        [first, second] = [
            self.add(limited_job("one", metadata=metadata(name)))[0].job_id for name in "ab"
        ]
        [claim] = self.claim()
        self.assertEqual((claim.job_id, self.ids("Blocked")), (first, [second]))
        self.settle(self.finished(claim))
        self.assertEqual((self.owners, self.ids("Ready")), ({"b": second}, [second]))

    def test_a_key_is_kept_after_a_success(self) -> None:
        self.add(unique_job("a", keep=HOUR), unique_job("b", keep=HOUR))
        a, b = self.claim()
        before = self.present()
        self.settle(self.finished(a), self.failed(b))
        after = self.present()
        [row] = self.rows("UniqueKey")
        self.assertEqual((row.key, row.job_id), ("a", a.job_id))
        self.assert_between(before + HOUR, self.aware(row.expires_at), after + HOUR)
        self.assertEqual(self.add(unique_job())[0].job_id, a.job_id)
        past = self.stored(self.present() - HOUR)
        self.rows("UniqueKey").update(expires_at=past)
        [new] = self.add(unique_job())
        self.assertFalse(new.is_duplicate)
        self.assertEqual(self.owners, {"a": new.job_id})
        self.assertIsNone(self.rows("UniqueKey").get().expires_at)

    def test_a_key_until_the_start_is_freed_by_it(self) -> None:
        self.add(unique_job("a", until=STARTED), unique_job("b"), new_job())
        claims = self.claim()
        lost = [claim._replace(token=claim.token + 1) for claim in claims]
        self.assertEqual(self.dialect.free_started_keys(self.connection, lost), set())
        self.assertEqual(sorted(self.owners), ["a", "b"])
        self.assertEqual(self.dialect.free_started_keys(self.connection, claims), set())
        self.assertEqual(sorted(self.owners), ["b"])
        started = [self.job(claim.job_id).started_at is not None for claim in claims]
        self.assertEqual(started, [True, False, False])

    def test_a_job_that_waits_is_replaced(self) -> None:
        """Wherever it waits, and for whatever it waits then."""
        kinds: list[dict[str, Any]] = [{}, {"delay": HOUR}, {"key": "one"}, {"key": "two"}]
        for number, before in enumerate(kinds):
            for other, after in enumerate(kinds):
                name = f"{number} {other}"
                [first] = self.add(self.replacing(name, "first", **before))
                [again] = self.add(self.replacing(name, "again", **after))
                self.assertEqual((again.job_id, again.is_duplicate), (first.job_id, True))
                self.assertEqual(self.job(first.job_id or 0).queue_name, "again")
                self.assertEqual(self.owners[name], first.job_id)
                self.assertEqual(first.job_id in self.ids("Scheduled"), "delay" in after)
                self.check_permits()
        self.assertEqual(self.rows("Job").count(), len(kinds) ** 2)

    def replacing(self, name: str, queue: str, key: str | None = None, **fields: Any) -> NewJob:
        text = metadata(name, on_conflict=REPLACE)
        if key is None:
            return new_job(queue, metadata=text, **fields)
        return limited_job(key, queue_name=queue, metadata=text, **fields)

    def test_a_claimed_job_is_not_replaced(self) -> None:
        self.add(unique_job(on_conflict=REPLACE))
        [claim] = self.claim()
        before = self.everything()
        [again] = self.add(unique_job(on_conflict=REPLACE, queue="other"))
        self.assertEqual((again.job_id, again.is_duplicate), (claim.job_id, True))
        self.assertEqual(self.everything(), before)

    def test_what_an_outcome_entails_is_unique(self) -> None:
        [present] = self.add(unique_job("c", queue="later"))
        self.enqueue_many(1)
        [claim] = self.claim(1, "default")
        jobs = [unique_job(name, on_conflict=RAISE) for name in "cabb"]
        sequel = Sequel(tuple(FollowUp(job) for job in jobs))
        self.settle(self.finished(claim, sequel=sequel))
        stored = [each.stored for each in sequel.follow_ups]
        self.assertEqual(stored[0], present._replace(is_duplicate=True))
        self.assertEqual([each is not None and each.is_duplicate for each in stored],
                         [True, False, False, True])  # fmt: skip
        self.assertEqual(sorted(self.owners), ["a", "b", "c"])
        self.assertEqual(self.rows("Job").count(), 4)
