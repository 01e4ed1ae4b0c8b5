"""The doctor says no more than it knows, and blames nobody for what others did."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.conformance.base import limited_job
from steady_queue_core.doctor import examine, examine_job
from steady_queue_core.listings import counts
from steady_queue_core.listings import queues as listed
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)

from ..models.everywhere import on_every_database
from ..models.recurrence import tasks
from .pasting import require_pasteable
from .ward import HOUR, MINUTE, TASK, Ward, usual


@pytest.fixture
def ward(using: str, settings: Any) -> Ward:
    settings.TASKS = tasks(using)
    return Ward(using)


def said(ward: Ward, code: str) -> list[str]:
    """Return what the doctor says under a code, with what is to be done."""
    found = [each for each in examine(ward.using) if each.code == code]
    for each in found:
        require_pasteable(each.remedy)
    return [f"{each.text} {each.remedy}" for each in found]


@on_every_database
def test_more_jobs_than_are_counted(
    using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (counts, listed):
        monkeypatch.setattr(module, "CAP", 3)
    ward.claimed(2)
    ward.ready(5), ward.ready(1, "mail"), ward.ready(5, delay=HOUR)
    ward.age(ward.rows(ScheduledExecution), due_at=HOUR)
    ward.stop("supervisor", "worker", "dispatcher", "scheduler")
    [text] = said(ward, "process-none")
    assert "of the jobs 4+ wait, 2 are claimed, 3+ are overdue" in text


@pytest.mark.parametrize("error", ["TaskCancelled", "ProcessPrunedError", "TaskExpired"])
@on_every_database
def test_a_job_that_somebody_else_has_ended_took_no_time(
    using: str, ward: Ward, error: str
) -> None:
    ward.failed(1)
    ward.age(ward.rows(Job), last_attempted_at=30 * MINUTE)
    assert len(said(ward, "shutdown-timeout-short")) == 1
    path = f"steady_queue_core.errors.{error}"
    ward.rows(FailedExecution).update(exception_class=path)
    assert said(ward, "shutdown-timeout-short") == []
    ward.finished(1)
    ward.age(ward.rows(Job).filter(failedexecution=None), last_attempted_at=10.5 * MINUTE)
    [text] = said(ward, "shutdown-timeout-short")
    assert "took 10 min" in text


@on_every_database
def test_a_holder_that_has_not_started_does_nothing_yet(using: str, ward: Ward) -> None:
    jobs = [limited_job("account", task_path=TASK, queue_name="default") for _ in range(2)]
    first, _ = ward.dialect.enqueue(ward.connection, jobs)
    ward.age(ward.rows(BlockedExecution), created_at=10 * MINUTE)
    [text] = said(ward, "limit-busy")
    assert (
        f'job {first.job_id}, which is ready in queue "default" and has not started, holds' in text
    )
    assert f"steady_queue doctor {first.job_id}" in text
    assert "what that job does" not in text
    ward.claim(1)
    [text] = said(ward, "limit-busy")
    assert re.search(rf"job {first.job_id}, claimed \d+ m?s ago by worker worker-1 \(", text)
    assert "what that job does" in text


@on_every_database
def test_a_holder_that_runs_is_named_before_others(using: str, ward: Ward) -> None:
    jobs = [limited_job("account", 2, task_path=TASK) for _ in range(3)]
    _, second, _ = ward.dialect.enqueue(ward.connection, jobs)
    ward.rows(ReadyExecution).filter(pk=second.job_id).update(rank=-9)
    ward.claim(1)
    ward.age(ward.rows(BlockedExecution), created_at=10 * MINUTE)
    [text] = said(ward, "limit-busy")
    assert f"job {second.job_id}, claimed" in text


@pytest.mark.parametrize(
    ("to", "others"), [(5, ""), (7, "; and 2 others"), (20, "; and 15+ others")]
)
@on_every_database
def test_more_holders_than_are_named(using: str, ward: Ward, to: int, others: str) -> None:
    jobs = [limited_job("account", to, task_path=TASK) for _ in range(to + 1)]
    *_, blocked = ward.dialect.enqueue(ward.connection, jobs)
    [*_, found] = examine_job(blocked.job_id or 0, using)
    assert found.text.count("; job ") == 4
    assert found.text.endswith(f'ready in queue "default"{others}.')


@on_every_database
def test_jobs_of_an_unknown_task_behind_many_others(using: str, ward: Ward) -> None:
    ward.ready(300)
    ward.ready(31, task_path="shop.gone")
    [text] = said(ward, "task-unknown")
    assert "The task shop.gone, which 31 of the next jobs name" in text


@on_every_database
def test_unknown_tasks_of_more_jobs_than_are_looked_at(
    using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steady_queue_core.doctor.next_jobs.MOST_NEXT", 5)
    ward.ready(8, task_path="shop.gone")
    [text] = said(ward, "task-unknown")
    assert "which 5+ of the next jobs name" in text


@on_every_database
def test_a_job_that_runs_much_longer_than_usual(using: str, ward: Ward) -> None:
    ward.claimed(1)
    ward.age(ward.rows(ClaimedExecution), created_at=20 * MINUTE)
    assert said(ward, "claim-long") == []
    usual(ward, TASK, timedelta(seconds=2))
    [text] = said(ward, "claim-long")
    assert "was claimed 20 min" in text
    assert "times as long as usual" in text


@on_every_database
def test_a_job_that_takes_as_long_as_usual(using: str, ward: Ward) -> None:
    usual(ward, TASK, 10 * MINUTE)
    ward.claimed(1)
    ward.age(ward.rows(ClaimedExecution), created_at=20 * MINUTE)
    assert said(ward, "claim-long") == []


@on_every_database
def test_the_commonest_of_many_errors_is_not_most_of_them(using: str, ward: Ward) -> None:
    for number, pk in enumerate(ward.failed(12)):
        rows = ward.rows(FailedExecution).filter(pk=pk)
        rows.update(exception_class=f"shop.Error{number // 5}")
    [text] = said(ward, "failures-many")
    assert "most of them" not in text
    ward.rows(FailedExecution).update(exception_class="shop.Error")
    [text] = said(ward, "failures-many")
    assert "most of them with shop.Error" in text
