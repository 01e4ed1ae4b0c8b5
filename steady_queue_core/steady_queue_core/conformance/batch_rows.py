"""The batches of the cases: their rows, and how their members end."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from ..arguments import DEFAULT_LIMITS
from ..dialects.callbacks import ON_FAILURE, ON_FINISH, ON_SUCCESS, encoded
from ..dialects.membership import DependencyState, MemberState, RunWhen, linked
from ..dialects.outcome import Outcome
from ..dialects.records import ClaimedJob, NewJob
from ..features.batches.link import Link
from .base import ConformanceCase, limited_job, new_job

#: The queues of the callbacks of a batch.
CALLBACKS = {name: name for name in (ON_SUCCESS, ON_FAILURE, ON_FINISH)}


class BatchRows(ConformanceCase):
    def new_batch(self, member: Any = None, *, has_started: bool = True) -> int:
        """Insert a batch with all callbacks; return its id."""
        present = self.stored(self.present())
        callbacks = encoded({name: new_job(name) for name in CALLBACKS}, DEFAULT_LIMITS)
        row = self.rows("JobBatch").create(
            kind="batch", backend_name="default", callbacks=callbacks, created_at=present,
            started_at=present if has_started else None, member=member,
        )  # fmt: skip
        return int(row.pk)

    def members(self, batch_id: int, *jobs: NewJob) -> list[int]:
        """Add jobs to a batch; return their ids."""
        metadata = linked(None, Link(batch_id, has_dependents=True))
        added = [replace(job, batch_id=batch_id, metadata=metadata) for job in jobs]
        return self.enqueue(*added)

    def waiting(
        self,
        batch_id: int,
        *parents: int,
        job: NewJob | None = None,
        run_when: Any = RunWhen.SUCCESS,
    ) -> int:
        """Add a job that waits for the members with these jobs; return its id."""
        with self.dialect.transaction(self.connection):
            [job_id] = self.members(batch_id, replace(job or new_job(), waits=True))
            row = self.job(job_id)
            self.rows("WaitingExecution").create(
                job_id=job_id, queue_name=row.queue_name, rank=row.rank,
                created_at=row.enqueued_at, width=len(parents),
                concurrency_key=row.concurrency_key,
            )  # fmt: skip
            for number, parent in enumerate(parents):
                self.rows("Dependency").create(
                    job_id=job_id, parent=self.rows("BatchMember").get(job_id=parent),
                    run_when=run_when, state=DependencyState.OPEN, number=number,
                )  # fmt: skip
        return job_id

    def callbacks(self) -> list[str]:
        """Return the names of the callbacks that were enqueued, in their order."""
        jobs = self.rows("Job").filter(queue_name__in=list(CALLBACKS)).order_by("pk")
        return list(jobs.values_list("queue_name", flat=True))

    def state_of(self, job_id: int) -> MemberState:
        return MemberState(self.rows("BatchMember").get(job_id=job_id).state)

    def settle_all(self, *outcomes: Any) -> None:
        self.assertEqual(self.settle(*outcomes), {each.job_id for each in outcomes})

    @cached_property
    def settler(self) -> int:
        """The process that claims and ends members."""
        return self.register("settler")

    def batch_of(self, *limited: bool, is_open: bool = False) -> int:
        """Insert a batch of jobs that no job waits for, each ``limited`` or not; return its id."""
        batch = self.new_batch(has_started=not is_open)
        metadata = linked(None, Link(batch))
        jobs = [limited_job("a", 1) if each else new_job() for each in limited]
        self.enqueue(*[replace(job, batch_id=batch, metadata=metadata) for job in jobs])
        return batch

    def members_claimed(self, limit: int = 10) -> list[ClaimedJob]:
        return self.claim(limit, "default", process_id=self.settler)

    def exchange(self, *outcomes: Outcome, limit: int = 0) -> tuple[set[int], list[ClaimedJob]]:
        """Settle, and claim up to ``limit`` jobs; with 0, one of a queue that has none."""
        patterns = ("default", ON_FINISH) if limit else ("none",)
        return self.settle_and_claim(
            *outcomes, process_id=self.settler, limit=limit or 1, patterns=patterns
        )

    def end_by_exchange(self, claim: ClaimedJob) -> set[int]:
        return self.again(lambda: self.exchange(self.finished(claim))[0])

    def member_states(self) -> dict[int | None, int]:
        """Return the states of members by their jobs."""
        return dict(self.rows("BatchMember").values_list("job_id", "state"))
