"""Whatever is done to a queue, in whatever order, every job is where it should be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from steady_queue_core.dialects import Ending, QueueSelector, settling
from steady_queue_core.dialects.registry import dialect_for, override
from steady_queue_core.models import ClaimedExecution, Pause, ScheduledExecution
from steady_queue_core.models.operations import cancel as cancelling
from steady_queue_core.models.operations import discard as discarding
from steady_queue_core.models.operations import retry, rows
from steady_queue_core.models.operations.semaphore_maintenance import SemaphoreMaintenance
from steady_queue_core.models.semaphore import Permit
from steady_queue_core.processes.supervisor import claim_results
from steady_queue_core.processes.worker import outcomes as of_workers
from steady_queue_core.processes.worker import task_transaction
from steady_queue_core.processes.worker.attempt import Attempt
from steady_queue_sqlite import plugin as sqlite

from ..conformance.mutants.permits import limited
from ..conformance.plugins import hooks_of, plugin, registry_of
from .everywhere import on_every_database
from .machine import QueueMachine
from .recurrence import tasks
from .searching import PATIENCE, another_seed, finds, search

MACHINE, STAGES = QueueMachine.__module__, settling.__name__


@pytest.mark.timeout(PATIENCE)
@on_every_database
def test_every_job_is_where_it_should_be(
    using: str, settings: Any, pytestconfig: pytest.Config
) -> None:
    settings.TASKS = tasks(using, backoff=0)
    search(QueueMachine, using, pytestconfig, seeds=SEEDS.values())


# --- what the machine finds

snoozed = of_workers.snoozed
claim, dispatch = sqlite.steady_queue_claim, sqlite.steady_queue_dispatch
enqueue, settle = sqlite.steady_queue_enqueue, sqlite.steady_queue_settle


def hook(name: str, function: Any) -> AbstractContextManager[Any]:
    """Have the SQLite dialect do one thing wrongly; it settles and claims in two steps then."""
    hooks = hooks_of(sqlite) | {f"steady_queue_{name}": function}
    del hooks["steady_queue_settle_and_claim"]
    return override(registry_of(plugin("sqlite", hooks)))


def failed_keep_their_permits(connection: Any, outcomes: Any) -> Any:
    return settle(connection, [
        each._replace(concurrency_key=None) if each.ending is Ending.FAILED else each
        for each in outcomes
    ])  # fmt: skip


def released_lose_their_permits(connection: Any, outcomes: Any) -> Any:
    released = [each.job_id for each in outcomes if each.ending is Ending.RELEASED]
    held = settle(connection, outcomes)
    Permit.objects.filter(pk__in=released).delete()
    return held


def heirs_take_nothing(connection: Any, outcomes: Any) -> Any:
    return settle(connection, [each._replace(heir=None) for each in outcomes])


def followers_hold_permits(connection: Any, process: Any, holders: Any, limit: int) -> Any:
    claims = sqlite.steady_queue_claim_followers(connection, process, holders, limit)
    for claim in claims:
        Permit.objects.create(job_id=claim.job_id, key=claim.concurrency_key)
    return claims


def retried_come_back_at_once(connection: Any, outcomes: Any) -> Any:
    return settle(connection, [each._replace(delay=0.0) for each in outcomes])


def ends_what_others_hold(connection: Any, outcomes: Any) -> Any:
    tokens = dict(ClaimedExecution.objects.values_list("pk", "token"))
    return settle(connection, [
        each._replace(token=tokens.get(each.job_id, each.token)) for each in outcomes
    ])  # fmt: skip


def one_more_than_the_limit(connection: Any, jobs: Any) -> Any:
    return [
        new
        for job in jobs
        for new in enqueue(connection, limited([job], to=job.limit.to + 1 if job.limit else 1))
    ]


def everybody_may_wait(connection: Any, jobs: Any) -> Any:
    return enqueue(connection, limited(jobs, discards=False))


def serves_paused_queues(connection: Any, process: Any, selector: Any, limit: int) -> Any:
    Pause.objects.all().delete()
    return claim(connection, process, selector, limit)


def serves_named_queues_backwards(connection: Any, process: Any, selector: Any, limit: int) -> Any:
    claims = claim(connection, process, selector, limit)
    return claims if selector.takes_all else claims[::-1]


def goes_by_queue_beside_a_pause(connection: Any, process: Any, selector: Any, limit: int) -> Any:
    if selector.takes_all and Pause.objects.exists():
        selector = QueueSelector(patterns=("Mail", "etl", "mail", "mailing"))
    return claim(connection, process, selector, limit)


def moves_what_is_not_due(connection: Any, limit: int) -> Any:
    for row in ScheduledExecution.objects.all():
        row.due_at -= timedelta(minutes=50)
        row.save()
    return dispatch(connection, limit)


@contextmanager
def permits_outlast(module: Any, name: str) -> Iterator[None]:
    end = getattr(module, name)

    def keep(jobs: Any, job_ids: Any) -> int:
        permits = list(Permit.objects.filter(pk__in=job_ids))
        gone = end(jobs, job_ids)
        Permit.objects.bulk_create(permits, ignore_conflicts=True)
        return int(gone)

    with mock.patch.object(module, name, keep):
        yield


def ready_at_once(job: Any, present: Any) -> Any:
    return retry.ReadyExecution(
        job_id=job.pk, queue_name=job.queue_name, rank=job.rank, token=job.token, created_at=present
    )


def stores_for_anybody(connection: Any, change: Any) -> bool:
    held = ClaimedExecution.objects.filter(pk=change.job_id).first()
    if held is not None:
        change = change._replace(token=held.token)
    return bool(sqlite.steady_queue_save_checkpoint(connection, change))


def takes_steps_for_anybody(connection: Any, step: Any) -> bool:
    held = ClaimedExecution.objects.filter(pk=step.job_id).first()
    return bool(
        sqlite.steady_queue_save_step(
            connection, step if held is None else step._replace(token=held.token)
        )
    )


class Careless:
    """A dialect that takes every claim for held."""

    def __init__(self, dialect: Any) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)

    def settle(self, connection: Any, outcomes: Any) -> set[int]:
        self._dialect.settle(connection, outcomes)
        return {outcome.job_id for outcome in outcomes}


def lost_as_failed(self: Attempt, error: BaseException, ended_at: Any, process: str) -> Any:
    return self.failed(error, ended_at)


def counted_as_an_attempt(claim: Any, started_at: Any, delay: float) -> Any:
    return snoozed(claim, started_at, delay)._replace(attempts=claim.attempts + 1)


WRONGS: dict[str, Any] = {
    "a failed job keeps its permit": lambda: hook("settle", failed_keep_their_permits),
    "a released job loses its permit": lambda: hook("settle", released_lose_their_permits),
    "an heir takes no permit over": lambda: hook("settle", heirs_take_nothing),
    "a follower holds a permit": lambda: hook("claim_followers", followers_hold_permits),
    "a retried job comes back at once": lambda: hook("settle", retried_come_back_at_once),
    "a claim is ended by who has lost it": lambda: hook("settle", ends_what_others_hold),
    "one more than the limit is let in": lambda: hook("enqueue", one_more_than_the_limit),
    "a job that is not to wait waits": lambda: hook("enqueue", everybody_may_wait),
    "a paused queue is served": lambda: hook("claim", serves_paused_queues),
    "the order of queues is not kept": lambda: hook("claim", serves_named_queues_backwards),
    "a pause changes the order": lambda: hook("claim", goes_by_queue_beside_a_pause),
    "a job is moved before it is due": lambda: hook("dispatch", moves_what_is_not_due),
    "who waits is let in by age alone": lambda: mock.patch(
        "steady_queue_sqlite.permits.PICK_BLOCKED",
        "SELECT job_id FROM steady_queue_blocked_executions WHERE concurrency_key = %s "
        "ORDER BY job_id LIMIT %s",
    ),
    "a retried failure needs no permit": lambda: mock.patch.object(
        retry, "_execution", ready_at_once
    ),
    "a discarded job keeps its permit": lambda: permits_outlast(discarding, "discard"),
    "a cancelled job keeps its permit": lambda: permits_outlast(cancelling, "end"),
    "a silent process keeps its permits": lambda: mock.patch.object(
        SemaphoreMaintenance, "_silent", return_value={}
    ),
    "a crash counts as an attempt": lambda: mock.patch.object(Attempt, "lost", lost_as_failed),
    "what is to start once is given back": lambda: mock.patch.object(
        claim_results, "may_repeat", return_value=True
    ),
    "what a dead process ran has no callbacks": lambda: mock.patch.object(
        claim_results, "with_callback", lambda result, claim: result
    ),
    "a task that has lost its claim leaves its writes": lambda: mock.patch.object(
        task_transaction, "dialect_for", lambda using: Careless(dialect_for(using))
    ),
    "an expired job starts": lambda: mock.patch(f"{MACHINE}.refusal_of", return_value=None),
    "a snooze counts as an attempt": lambda: mock.patch.object(
        of_workers, "snoozed", counted_as_an_attempt
    ),
    "an ending forgets the metadata": lambda: mock.patch(f"{STAGES}.write_metadata"),
    "a job that runs again is still to be cleared": lambda: mock.patch.object(retry, "Retention"),
    "a checkpoint outlasts the success of its job": lambda: mock.patch(f"{STAGES}.end_checkpoints"),
    "a checkpoint outlasts its job": lambda: mock.patch.object(rows, "Checkpoint"),
    "who has lost a claim stores a checkpoint": lambda: hook("save_checkpoint", stores_for_anybody),
    "a step outlasts its job": lambda: mock.patch.object(rows, "Step"),
    "the steps of a job that is not kept stay": lambda: mock.patch(f"{STAGES}.end_steps"),
    "who has lost a claim takes a step": lambda: hook("save_step", takes_steps_for_anybody),
    "the last progress is lost": lambda: mock.patch(f"{STAGES}.last_progress", return_value=[]),
}

#: A seed that finds it, as few different ones as possible: a run for a merge replays them all.
SEEDS = {
    "a failed job keeps its permit": 324,
    "a released job loses its permit": 324,
    "an heir takes no permit over": 324,
    "a follower holds a permit": 324,
    "a retried job comes back at once": 324,
    "a claim is ended by who has lost it": 80,
    "one more than the limit is let in": 324,
    "a job that is not to wait waits": 324,
    "a paused queue is served": 324,
    "the order of queues is not kept": 324,
    "a pause changes the order": 324,
    "a job is moved before it is due": 324,
    "who waits is let in by age alone": 324,
    "a retried failure needs no permit": 324,
    "a discarded job keeps its permit": 324,
    "a cancelled job keeps its permit": 32,
    "a silent process keeps its permits": 80,
    "a crash counts as an attempt": 49,
    "what is to start once is given back": 49,
    "what a dead process ran has no callbacks": 49,
    "a task that has lost its claim leaves its writes": 32,
    "an expired job starts": 29,
    "a snooze counts as an attempt": 21,
    "an ending forgets the metadata": 324,
    "a job that runs again is still to be cleared": 324,
    "a checkpoint outlasts the success of its job": 324,
    "a checkpoint outlasts its job": 32,
    "who has lost a claim stores a checkpoint": 49,
    "a step outlasts its job": 21,
    "the steps of a job that is not kept stay": 324,
    "who has lost a claim takes a step": 80,
    "the last progress is lost": 324,
}


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wrong", WRONGS)
def test_the_machine_finds_that(wrong: str, settings: Any) -> None:
    settings.TASKS = tasks("default", backoff=0)
    with WRONGS[wrong]():
        assert finds(QueueMachine, SEEDS[wrong]), another_seed(QueueMachine)
