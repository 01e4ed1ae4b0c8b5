"""What can be done with jobs that have ended, or wait: retry, run now, discard, clear."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connections, transaction

from steady_queue_core.conformance import threads
from steady_queue_core.dialects import portable
from steady_queue_core.errors import UndiscardableError
from steady_queue_core.models import FailedExecution, Job, ReadyExecution, ScheduledExecution
from steady_queue_core.models.operations.discard import discard
from steady_queue_core.models.operations.run_now import run_now

from .everywhere import Jobs, on_every_database, on_every_server

HOUR = timedelta(hours=1)


@on_every_database
def test_a_failed_job_that_is_retried_runs_again_with_all_its_attempts(using: str) -> None:
    jobs = Jobs(using)
    [failed] = jobs.failed(queue_name="mail", rank=-3)
    job = jobs.all.get(pk=failed)

    assert job.retry() is True
    assert job.retry() is False

    [claim] = jobs.claim(10, "mail")
    assert (claim.job_id, claim.rank, claim.attempts) == (failed, -3, 0)
    assert claim.token > 1
    assert "told" in (claim.errors or "")
    job.refresh_from_db()
    assert job.finished_at is None
    assert jobs.ids(FailedExecution) == []


@on_every_database
def test_failed_jobs_are_retried_in_batches_and_others_left_alone(using: str) -> None:
    jobs = Jobs(using)
    failed, finished = jobs.failed(7), jobs.finished(2)

    assert jobs.all.filter(task_path="another.task").retry_failed() == 0
    assert jobs.all.all().retry_failed(batch_size=3) == 7

    assert jobs.ids(ReadyExecution) == failed
    assert jobs.all.filter(finished_at__isnull=False).count() == len(finished)


@on_every_database
def test_a_retry_is_part_of_the_callers_transaction(using: str) -> None:
    jobs = Jobs(using)
    failed = jobs.failed(2)
    with transaction.atomic(using=using):
        assert jobs.all.all().retry_failed() == 2
        transaction.set_rollback(True, using=using)
    assert jobs.ids(FailedExecution) == failed
    assert jobs.ids(ReadyExecution) == []


@on_every_database
def test_scheduled_jobs_run_now_and_others_stay_as_they_are(using: str) -> None:
    jobs = Jobs(using)
    [urgent] = jobs.ready(queue_name="mail", rank=-3, delay=HOUR)
    later, kept = jobs.ready(5, delay=2 * HOUR), jobs.ready(2, "other", delay=HOUR)
    failed = jobs.failed(1)
    job = jobs.all.get(pk=urgent)

    assert (job.run_now(), job.run_now()) == (True, False)
    assert jobs.all.get(pk=failed[0]).run_now() is False
    assert jobs.all.filter(pk__in=[*later, *failed]).run_now(batch_size=2) == len(later)

    assert jobs.ids(ScheduledExecution) == kept
    assert jobs.ids(FailedExecution) == failed
    [claim] = jobs.claim(10, "mail")
    assert (claim.job_id, claim.rank) == (urgent, -3)
    assert [claim.job_id for claim in jobs.claim(10)] == later


@on_every_database
def test_to_run_now_takes_the_jobs_that_were_meant_before_others_that_are_due(using: str) -> None:
    jobs = Jobs(using)
    due, [meant] = jobs.ready(3, delay=HOUR), jobs.ready(delay=2 * HOUR)
    past = portable.storable(jobs.dialect.current_time(jobs.connection) - timedelta(days=9_000))
    ScheduledExecution.objects.using(using).filter(pk__in=due).update(due_at=past)

    assert jobs.all.get(pk=meant).run_now() is True

    assert jobs.ids(ReadyExecution) == [meant]
    assert jobs.ids(ScheduledExecution) == due


@on_every_database
def test_to_run_now_is_part_of_the_callers_transaction(using: str) -> None:
    jobs = Jobs(using)
    scheduled = jobs.ready(2, delay=HOUR)
    with transaction.atomic(using=using):
        assert jobs.all.all().run_now() == 2
        assert jobs.ids(ReadyExecution) == scheduled
        transaction.set_rollback(True, using=using)
    assert jobs.ids(ScheduledExecution) == scheduled
    assert jobs.ids(ReadyExecution) == []


@on_every_server
def test_a_job_that_is_dispatched_while_it_is_to_run_now_is_so_once(using: str) -> None:
    jobs = Jobs(using)
    [job_id] = jobs.ready(delay=HOUR)
    past = portable.storable(jobs.dialect.current_time(jobs.connection) - HOUR)
    ScheduledExecution.objects.using(using).update(due_at=past)
    moved, asked_for = threading.Event(), threading.Event()

    def dispatch() -> None:
        with transaction.atomic(using=using):
            assert jobs.dialect.dispatch(connections[using], 10).moved == 1
            moved.set()
            assert asked_for.wait(20)

    dispatching = threads.start(using, dispatch)
    assert moved.wait(20)
    asking = threads.start(using, lambda: run_now(Job.objects.using(using), [job_id]))
    asked_for.set()
    dispatching.result(20)
    assert asking.result(20) == 0
    assert jobs.ids(ReadyExecution) == [job_id]


@on_every_database
def test_jobs_that_wait_or_have_failed_can_be_discarded(using: str) -> None:
    jobs = Jobs(using)
    failed = jobs.failed(2)
    finished = jobs.finished(1)
    [running] = jobs.claimed()
    ready = jobs.ready(3)
    [scheduled] = jobs.ready(delay=HOUR)

    jobs.all.get(pk=scheduled).discard()
    for job_id in (*finished, running.job_id):
        with pytest.raises(UndiscardableError, match="cannot be discarded"):
            jobs.all.get(pk=job_id).discard()
    assert jobs.all.all().discard(batch_size=2) == len(failed) + len(ready)

    assert jobs.ids(Job) == sorted([*finished, running.job_id])
    for model in (ReadyExecution, ScheduledExecution, FailedExecution):
        assert jobs.ids(model) == []


@on_every_server
def test_a_job_that_becomes_ready_while_it_is_discarded_is_gone_all_the_same(using: str) -> None:
    jobs = Jobs(using)
    [job_id] = jobs.ready(delay=HOUR)
    past = portable.storable(jobs.dialect.current_time(jobs.connection) - HOUR)
    ScheduledExecution.objects.using(using).update(due_at=past)
    moved, asked_for = threading.Event(), threading.Event()

    def dispatch() -> None:
        with transaction.atomic(using=using):
            assert jobs.dialect.dispatch(connections[using], 10).moved == 1
            moved.set()
            assert asked_for.wait(20)

    def lock_rows(connection: Any, rows: Any, *, wait: bool) -> Any:
        if rows.model is ScheduledExecution:
            asked_for.set()
        return lock(connection, rows, wait=wait)

    lock = jobs.dialect.lock_rows
    dispatching = threads.start(using, dispatch)
    assert moved.wait(20)
    with mock.patch.object(jobs.dialect, "lock_rows", lock_rows):
        assert discard(Job.objects.using(using), [job_id]) == 1
    dispatching.result(20)
    assert jobs.ids(Job) == jobs.ids(ReadyExecution) == []


@on_every_database
def test_finished_jobs_are_cleared_in_batches_and_failed_ones_stay(using: str) -> None:
    jobs = Jobs(using)
    failed, old = jobs.failed(3), jobs.finished(5)
    more_failed, older = jobs.failed(2), jobs.finished(4)
    present = jobs.dialect.current_time(jobs.connection)
    past = portable.storable(present - timedelta(days=2))
    jobs.all.filter(pk__in=[*failed, *old, *more_failed, *older]).update(finished_at=past)
    young, waiting = jobs.finished(2), jobs.ready(1)

    assert jobs.all.clear_finished_in_batches(batch_size=3) == 9

    assert jobs.ids(Job) == sorted([*failed, *more_failed, *waiting, *young])
    assert jobs.ids(ReadyExecution) == waiting
    assert jobs.all.clear_finished_in_batches(finished_before=present + HOUR) == 2


@on_every_database
def test_only_the_jobs_of_one_task_are_cleared_where_it_is_named(using: str) -> None:
    jobs = Jobs(using)
    kept, gone = jobs.finished(2), jobs.finished(2, task_path="shop.tasks.clean")
    present = jobs.dialect.current_time(jobs.connection)
    cleared = jobs.all.clear_finished_in_batches(
        finished_before=present + HOUR, task_path="shop.tasks.clean"
    )
    assert cleared == len(gone)
    assert jobs.ids(Job) == kept
