"""What the processes and the API ask the database, by the code that asks it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.db import connections

from steady_queue_core.conformance.base import ending, new_job
from steady_queue_core.dialects import Ending, ProcessIdentity, QueueSelector, portable
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import ClaimedExecution, Job, Permit, Queue, claims, process
from steady_queue_core.models.job import find_job
from steady_queue_core.models.operations import discard, retry, run_now
from steady_queue_core.models.operations.clear import (
    FailedJobs,
    FinishedJobs,
    PastRuns,
    RetainedJobs,
)
from steady_queue_core.models.operations.semaphore_maintenance import SemaphoreMaintenance
from steady_queue_core.models.operations.stateless_jobs import StatelessJobs
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.dispatcher.retention import expired
from steady_queue_core.processes.scheduler.due_times import _known_slots
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.tasks.results import task_result_of

from .building import FAILED_OF, KEYS, Shape

DAY = timedelta(days=1)
WORKER = ProcessIdentity(1, "worker-1")
#: What the scheduler has to know of a definition.
SCHEDULE: Any = SimpleNamespace(key="schedule7", overlap="queue")


class Place:
    """A database with a history, and ids of jobs in it."""

    def __init__(self, using: str, shape: Shape) -> None:
        self.using, self.shape = using, shape
        self.connection, self.dialect = connections[using], dialect_for(using)
        self.present = self.dialect.current_time(self.connection)
        self.jobs = Job.objects.using(using)

    def ids(self, state: str, count: int = 500) -> list[int]:
        first = self.shape.first(state)
        return list(range(first, first + count))

    @property
    def failed_ids(self) -> list[int]:
        return [FAILED_OF * (each + 1_00) for each in range(min(500, self.shape.ended // 40))]

    def claim(self, count: int, *patterns: str) -> Any:
        selector = QueueSelector.of(patterns)
        found = self.dialect.claim(self.connection, WORKER, selector, count)
        assert len(found) == count
        return found

    def settle(self, how: Ending, count: int) -> None:
        outcomes = [ending(how, claim) for claim in self.claim(count)]
        assert len(self.dialect.settle(self.connection, outcomes)) == count

    def settle_and_claim(self) -> None:
        outcomes = [ending(Ending.FINISHED, claim) for claim in self.claim(20)]
        self.dialect.settle_and_claim(self.connection, outcomes, WORKER, QueueSelector(), 20)

    def follow(self) -> None:
        """Claim what follows the jobs that hold permits, and end one with an heir."""
        claimed = ClaimedExecution.objects.using(self.using)
        # By their ids: SQLite without statistics may look for the permit of every job.
        of_permits = list(Permit.objects.using(self.using).values_list("pk", flat=True))
        held = claimed.filter(pk__in=of_permits)
        held.update(process_id=WORKER.id)
        holders = [portable.claimed_job(row, row.job, self.present) for row in held]
        found = self.dialect.claim_followers(self.connection, WORKER, holders, 20)
        assert len(found) == 20 * len(holders) == 20 * KEYS
        [first] = [each for each in found if each.follows == holders[0].job_id]
        outcome = ending(Ending.FINISHED, holders[0], heir=(first.job_id, first.token))
        assert len(self.dialect.settle(self.connection, [outcome])) == 1

    def batches(self, name: str, states: Any, **where: Any) -> None:
        rows = self.jobs.filter(**where)._to_change(name, 500)
        assert list(islice(rows._batches(states, 500), 2))

    def sweep(self, sweep: Any) -> None:
        """Clear a batch that even a short history is good for, and a part of the next."""
        assert sweep.clear(150)
        assert sweep.clear(20)


class Operation(NamedTuple):
    """Something that is done again and again, and how many rows the server may read for it."""

    do: Callable[[Place], object]
    rows: int
    #: Whether PostgreSQL plans its statements once.
    planned: bool = False


def _recovery(place: Place) -> None:
    Rescuer(QueueDatabase(place.using)).rescue_orphans()


def _looks(place: Place, after: int) -> None:
    assert StatelessJobs(place.using, place.jobs).look(after).job_ids == []


OPERATIONS: dict[str, Operation] = {
    # A worker.
    "claim": Operation(lambda p: p.claim(50), 500, planned=True),
    "claim by name": Operation(lambda p: p.claim(50, "q3", "q1"), 900, planned=True),
    "claim by pattern": Operation(lambda p: p.claim(50, "q*"), 900, planned=True),
    "claim all but some": Operation(lambda p: p.claim(50, "!q1*", "!q3"), 900, planned=True),
    "claim but some of a pattern": Operation(
        lambda p: p.claim(50, "q*", "!q0", "!q1*"), 900, planned=True
    ),
    "finish": Operation(lambda p: p.settle(Ending.FINISHED, 20), 600, planned=True),
    "fail": Operation(lambda p: p.settle(Ending.FAILED, 20), 600, planned=True),
    "try again": Operation(lambda p: p.settle(Ending.RETRIED, 20), 600, planned=True),
    "give back": Operation(lambda p: p.settle(Ending.RELEASED, 20), 600, planned=True),
    "finish and claim": Operation(lambda p: p.settle_and_claim(), 900, planned=True),
    "follow": Operation(lambda p: p.follow(), 6_000, planned=True),
    "list queues": Operation(lambda p: p.dialect.list_queues(p.connection), 200, planned=True),
    # MySQL and MariaDB read what they count once more, from a temporary table.
    "count ready": Operation(lambda p: p.dialect.count_ready(p.connection, "q1", 500), 1_100),
    "count none": Operation(lambda p: p.dialect.count_ready(p.connection, "none", 500), 50),
    "enqueue": Operation(lambda p: p.dialect.enqueue(p.connection, [new_job()] * 50), 500),
    # A dispatcher.
    "dispatch": Operation(lambda p: p.dialect.dispatch(p.connection, 500), 4_000, planned=True),
    "look for what is old": Operation(lambda p: list(expired(p.using, p.present)), 300),
    "clear finished": Operation(
        lambda p: p.sweep(FinishedJobs(p.jobs.filter(backend_name="default"), p.present - DAY)),
        2_500,
    ),
    "clear failed": Operation(
        lambda p: p.sweep(FailedJobs(p.jobs.filter(backend_name="default"), p.present - DAY)), 2_500
    ),
    "clear failed of others": Operation(
        lambda p: FailedJobs(p.jobs.exclude(backend_name="default"), p.present).clear(150), 1_500
    ),
    "clear kept": Operation(lambda p: p.sweep(RetainedJobs(p.jobs, p.present)), 2_500),
    "clear slots": Operation(lambda p: p.sweep(PastRuns(p.using, p.present - DAY)), 2_500),
    "semaphore maintenance": Operation(lambda p: SemaphoreMaintenance(p.using).do(), 12_000),
    # A scheduler.
    "last slot": Operation(lambda p: _known_slots(p.connection, SCHEDULE, p.present), 100),
    # A supervisor.
    "register": Operation(
        lambda p: process.register(
            p.using, kind="worker", name="w", pid=1, hostname="h", supervisor_id=1, metadata="{}"
        ),
        100,
    ),
    "heartbeat": Operation(lambda p: process.beat(p.using, WORKER), 100),
    "silent processes": Operation(lambda p: process.expired(p.using, p.present - DAY), 100),
    "claims of a process": Operation(lambda p: claims.held_by(p.using, 1, 200), 2_000),
    "claims of nobody": Operation(lambda p: claims.without_process(p.using, 200), 2_000),
    "claims of no job": Operation(lambda p: claims.discard_without_job(p.using, 200), 2_000),
    "recovery": Operation(_recovery, 9_000),
    "jobs without a state": Operation(lambda p: _looks(p, 0), 9_000),
    "newest jobs without a state": Operation(
        lambda p: _looks(p, p.jobs.order_by("-pk")[1_999].pk), 30_000
    ),
    "judging jobs without a state": Operation(
        lambda p: StatelessJobs(p.using, p.jobs).among(p.ids("ready", 400)), 6_000
    ),
    # The API, a batch each.
    # Jobs that lie between those of the state may be cheaper to read than to step over.
    "failed jobs": Operation(lambda p: p.batches("retry_failed", retry.STATES), 40_000),
    "failed jobs of a task": Operation(
        lambda p: p.batches("retry_failed", retry.STATES, task_path="shop.tasks.t3"), 250_000
    ),
    "jobs to discard": Operation(lambda p: p.batches("discard", discard.STATES), 40_000),
    "jobs to run now": Operation(lambda p: p.batches("run_now", run_now.STATES), 40_000),
    "clear a queue": Operation(lambda p: Queue("q1", p.using).clear(), 90_000),
    "retry": Operation(lambda p: retry.retry(p.jobs, p.failed_ids), 9_000),
    "discard failed": Operation(lambda p: discard.discard(p.jobs, p.failed_ids), 9_000),
    "discard ready": Operation(lambda p: discard.discard(p.jobs, p.ids("ready", 400)), 9_000),
    "discard blocked": Operation(lambda p: discard.discard(p.jobs, p.ids("blocked", 400)), 12_000),
    "run scheduled": Operation(lambda p: run_now.run_now(p.jobs, p.ids("scheduled", 100)), 40_000),
    "run blocked": Operation(lambda p: run_now.run_now(p.jobs, p.ids("blocked", 400)), 12_000),
    "result": Operation(lambda p: task_result_of(find_job(p.using, "1234")), 50),
    "result of a claim": Operation(
        lambda p: task_result_of(find_job(p.using, str(p.shape.first("claimed")))), 50
    ),
    "pause and resume": Operation(
        lambda p: (Queue("q1", p.using).pause(), Queue("q1", p.using).resume()), 100
    ),
    "queues": Operation(lambda p: Queue.all(p.using), 200),
}
#: Whose costs must not grow with the history.
RETENTION = ("clear finished", "clear failed", "clear kept", "clear slots")
