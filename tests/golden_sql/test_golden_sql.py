"""Each operation sends what its file shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.transaction import atomic

from steady_queue_core.conformance.base import ending, limited_job, new_job
from steady_queue_core.conformance.batch_rows import BatchRows
from steady_queue_core.conformance.unique import unique_job
from steady_queue_core.dialects import (
    Arrival,
    CheckpointChange,
    ClaimedJob,
    Ending,
    NewJob,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    StepRecord,
)
from steady_queue_core.dialects.membership import Link, linked
from steady_queue_core.features.unique.key import REPLACE, STARTED
from steady_queue_core.progress import Progress

from .cases import GoldenCase, on_each_database

MINUTE = timedelta(minutes=1)


class Sql(BatchRows, GoldenCase):
    def test_enqueue(self) -> None:
        cases = {
            "one job": [new_job()],
            "several jobs that are alike": [new_job(), new_job()],
            "several jobs": [new_job(), new_job("mail", rank=-5)],
            "a job with a delay": [new_job(delay=MINUTE)],
            "a job for an instant": [new_job(run_at=self.present() + MINUTE)],
            "a job with a limit": [limited_job()],
            "jobs of one key": [limited_job(to=2), limited_job(to=2), limited_job(to=2)],
            "a job that rather is not run than waits": [limited_job(discards=True)],
        }
        for title, jobs in cases.items():
            self.record(title, lambda jobs=jobs: self._enqueue(*jobs), in_worker=False)
        self.compare("enqueue")

    def _enqueue(self, *jobs: NewJob) -> None:
        self.dialect.enqueue(self.connection, jobs)

    def test_unique_keys(self) -> None:
        replacing = unique_job(on_conflict=REPLACE, queue="mail")
        enqueues: dict[str, tuple[NewJob, Any]] = {
            "a job with a key": (unique_job(), None),
            "a duplicate": (unique_job(), lambda: self._enqueue(unique_job())),
            "a job that replaces another one": (replacing, lambda: self._enqueue(unique_job())),
        }
        for title, (job, given) in enqueues.items():
            self.record(title, lambda *_, job=job: self._enqueue(job), given=given, in_worker=False)
        ends = {"the end of a job": {}, "the end of a job that keeps its key": {"keep": MINUTE}}
        for title, fields in ends.items():
            self.record(
                title, lambda claim: self.settle(self.finished(claim)),
                given=lambda fields=fields: self.claimed_job(unique_job(**fields)),
            )  # fmt: skip
        self.record(
            "the start of a job that gives its key up", self._start,
            given=lambda: self.claimed_job(unique_job(until=STARTED)),
        )  # fmt: skip
        self.compare("unique_keys")

    def _start(self, claim: ClaimedJob) -> None:
        self.dialect.free_started_keys(self.connection, [claim])

    def test_claim(self) -> None:
        cases: dict[str, tuple[str, ...]] = {
            "all queues": ("*",),
            "one queue": ("mail",),
            "queues by prefix": ("mail*",),
            "all queues but some": ("*", "!mail*"),
        }
        for title, patterns in cases.items():
            self.record(title, lambda worker, patterns=patterns: self._claim(worker, *patterns),
                        given=self._jobs_of_two_queues)  # fmt: skip

        def pause() -> ProcessIdentity:
            worker = self._jobs_of_two_queues()
            self.pause("mail")
            return worker

        self.record("all queues, one of them paused", self._claim, given=pause)
        self.record("nothing is ready", self._claim, given=self._worker)

        def claim_twice(worker: ProcessIdentity) -> None:
            self._claim(worker)
            self._claim(worker)

        self.record("nothing is ready, twice", claim_twice, given=self._worker)
        self.compare("claim")

    def test_settle(self) -> None:
        for title, outcome_of in OUTCOMES.items():
            for limited in (False, True):
                self.record(
                    f"{title}, with a limit" if limited else title,
                    lambda claim, outcome_of=outcome_of: self.settle(outcome_of(self, claim)),
                    given=lambda limited=limited: self._claimed(limited=limited)[1],
                )
        self.record(
            "finished, with an heir",
            lambda claims: self.settle(
                self.finished(claims[0], heir=(claims[1].job_id, claims[1].token))
            ),
            given=self._chain,
        )
        self.compare("settle")

    def test_settle_and_claim(self) -> None:
        for title in ("finished", "released"):
            for limited in (False, True):
                self.record(
                    f"{title}, with a limit" if limited else title,
                    lambda given, title=title: self._settle_and_claim(
                        given[0], OUTCOMES[title](self, given[1])
                    ),
                    given=lambda limited=limited: self._claimed(limited=limited, waiting=True),
                )
        self.compare("settle_and_claim")

    def test_members(self) -> None:
        self.record("a job of a batch", lambda job: self._enqueue(job),
                    given=lambda: self._members(0)[0], in_worker=False)  # fmt: skip
        cases = {"a member that others are left of": 2, "the last member": 1}
        for title, count in cases.items():
            self.record(title, lambda given: self.settle(self.finished(given[1])),
                        given=lambda count=count: self._member(count))  # fmt: skip
            self.record(
                f"{title}, and a claim",
                lambda given: self._settle_and_claim(given[0], self.finished(given[1])),
                given=lambda count=count: self._member(count),
            )
        self.record("a member that failed, others are left, and a claim",
                    lambda given: self._settle_and_claim(given[0], self.failed(given[1])),
                    given=lambda: self._member(2))  # fmt: skip
        self.record("a member that a job waits for",
                    lambda given: self.settle(self.finished(given[1])),
                    given=lambda: self._member(1, waiting=True))  # fmt: skip
        self.compare("members")

    def test_claim_followers(self) -> None:
        for title, waiting in {"nobody waits": False, "a job waits": True}.items():
            self.record(
                title,
                lambda given: self._follow(*given),
                given=lambda waiting=waiting: self._claimed(limited=True, waiting=waiting),
            )
        self.compare("claim_followers")

    def test_save_checkpoint(self) -> None:
        changes: dict[str, dict[str, Any]] = {
            "a checkpoint": {"data": '{"row":17}'},
            "progress": {"progress": Progress(17, 100, "rows")},
            "both": {"data": '{"row":17}', "progress": Progress(17)},
        }
        for title, columns in changes.items():
            self.record(
                title,
                lambda claim, columns=columns: self.dialect.save_checkpoint(
                    self.connection, CheckpointChange(claim.job_id, claim.token, **columns)
                ),
                given=lambda: self._claimed(limited=False)[1],
                in_worker=False,
            )
        self.compare("save_checkpoint")

    def test_save_step(self) -> None:
        self.record(
            "a step",
            lambda claim: self.dialect.save_step(
                self.connection,
                StepRecord(claim.job_id, claim.token, "charge", 2, False, '{"paid":17}'),
            ),
            given=lambda: self._claimed(limited=False)[1],
            in_worker=False,
        )
        self.compare("save_step")

    def test_take_turn(self) -> None:
        def enqueued() -> Arrival:
            return Arrival(*self.enqueue(new_job("fair")), "fair", 0, "key", 1.0)

        self.record(
            "a job of a fair queue",
            lambda arrival: self.dialect.take_turn(self.connection, arrival),
            given=enqueued,
            in_worker=False,
        )
        self.compare("take_turn")

    def test_dispatch(self) -> None:
        def due(*jobs: NewJob) -> None:
            for job_id in self.enqueue(*jobs):
                self.make_due(job_id)  # Those that are scheduled.

        cases = {
            "due jobs": [new_job(delay=MINUTE)],
            "a due job with a limit": [limited_job(delay=MINUTE)],
            "a due job with a limit that finds no permit": [
                limited_job(),
                limited_job(discards=True, delay=MINUTE),
            ],
        }
        for title, jobs in cases.items():
            self.record(title, lambda _: self.dialect.dispatch(self.connection, 10),
                        given=lambda jobs=jobs: due(*jobs))  # fmt: skip
        self.record("nothing is due", lambda: self.dialect.dispatch(self.connection, 10))
        self.compare("dispatch")

    def test_admit(self) -> None:
        def wait() -> None:
            self.enqueue(limited_job(), limited_job())
            self.rows("Permit").delete()
            self.rows("ReadyExecution").delete()

        self.record(
            "a key with a waiting job",
            lambda _: self.dialect.admit(self.connection, ["key"]),
            given=wait,
        )
        self.record("an unknown key", lambda: self.dialect.admit(self.connection, ["key"]))
        self.compare("admit")
        self.rows("Job").delete()  # One of them has lost its row.

    def test_list_queues(self) -> None:
        self.record("all", lambda: self.dialect.list_queues(self.connection))
        self.record("by prefix", lambda: self.dialect.list_queues(self.connection, "mail"))
        self.compare("list_queues")

    def test_count_ready(self) -> None:
        count = partial(self.dialect.count_ready, self.connection, "mail", 100)
        self.record("in a session of the project", count, in_worker=False)

        def in_a_transaction() -> None:
            with atomic(using=self.connection.alias):
                count()

        self.record("in a transaction of the caller", in_a_transaction, in_worker=False)
        self.compare("count_ready")

    def test_insert_if_absent(self) -> None:
        def pause(queue_name: str) -> None:
            row = self.rows("Pause").model(queue_name=queue_name, created_at=self.stored(self.now))
            self.dialect.insert_if_absent(self.connection, row, ["queue_name"])

        self.now = self.present()
        self.record("an absent row", lambda: pause("mail"))
        self.record(
            "a row that is there", lambda _: pause("mail"), given=lambda: self.pause("mail")
        )
        self.compare("insert_if_absent")

    def test_upsert(self) -> None:
        def upsert() -> None:
            present = self.stored(self.now)
            rows = [self.rows("Pause").model(queue_name=name, created_at=present) for name in "ab"]
            # Not every version of Django begins a transaction for rows that fit one statement.
            with self.dialect.transaction(self.connection):
                self.dialect.upsert(self.connection, rows, ["queue_name"], ["created_at"])

        self.now = self.present()
        self.record("rows", upsert)
        self.compare("upsert")

    def test_tune_tables(self) -> None:
        def tune() -> None:
            with self.connection.cursor() as cursor:
                for statement in self.dialect.tune_tables(self.connection):
                    cursor.execute(statement)

        self.record("as the migration does", tune)
        self.compare("tune_tables")

    def test_clock(self) -> None:
        self.record("the present time", self.present)
        self.compare("clock")

    def _worker(self) -> ProcessIdentity:
        return self.identity(self.register())

    def _jobs_of_two_queues(self) -> ProcessIdentity:
        self.enqueue(new_job(), new_job("mail"), new_job("mail", rank=-5))
        return self._worker()

    def _claim(self, worker: ProcessIdentity, *patterns: str) -> None:
        selector = QueueSelector.of(patterns)
        self.dialect.claim(self.connection, worker, selector, 2)

    def _claimed(self, *, limited: bool, waiting: bool = False) -> Any:
        job = limited_job() if limited else new_job()
        self.enqueue(job)
        worker = self._worker()
        [claim] = self.dialect.claim(self.connection, worker, QueueSelector(), 1)
        if waiting:
            self.enqueue(job)
        return worker, claim

    def _members(self, count: int, *, waiting: bool = False) -> list[NewJob]:
        """Store a batch of so many jobs; return another one for it. With ``waiting``, one more job
        waits for the first."""
        batch_id = self.new_batch()
        metadata = linked(None, Link(batch_id, has_dependents=waiting))
        job = replace(new_job(), batch_id=batch_id, metadata=metadata)
        ids = self.enqueue(*[job] * count)
        if waiting:
            self.waiting(batch_id, *ids)
        return [job]

    def _member(self, count: int, *, waiting: bool = False) -> tuple[ProcessIdentity, ClaimedJob]:
        self._members(count, waiting=waiting)
        worker = self._worker()
        [claim] = self.dialect.claim(self.connection, worker, QueueSelector(), 1)
        return worker, claim

    def _follow(self, worker: ProcessIdentity, claim: ClaimedJob) -> list[ClaimedJob]:
        return self.dialect.claim_followers(self.connection, worker, [claim], 5)

    def _chain(self) -> list[ClaimedJob]:
        worker, claim = self._claimed(limited=True, waiting=True)
        return [claim, *self._follow(worker, claim)]

    def _settle_and_claim(self, worker: ProcessIdentity, outcome: Outcome) -> None:
        selector = QueueSelector()
        self.dialect.settle_and_claim(self.connection, [outcome], worker, selector, 2)


OUTCOMES: dict[str, Any] = {
    "finished": lambda case, claim: case.finished(claim),
    "finished, and not kept": lambda case, claim: case.finished(claim, preserve=False),
    "failed": lambda case, claim: case.failed(claim),
    "retried later": lambda case, claim: ending(Ending.RETRIED, claim, attempts=1, delay=60.0),
    "retried at once": lambda case, claim: ending(Ending.RETRIED, claim, attempts=1),
    "released": lambda case, claim: ending(Ending.RELEASED, claim),
}

on_each_database(globals(), Sql)
