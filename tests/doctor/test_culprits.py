"""Who holds up or fails others is named, before those that suffer from it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.doctor import Finding, examine
from steady_queue_core.doctor.finding import place
from steady_queue_core.models import ClaimedExecution, Job, ProcessEnd, ReadyExecution

from ..models.everywhere import on_every_database
from ..models.recurrence import tasks
from .pasting import require_pasteable
from .ward import MINUTE, Ward


@pytest.fixture
def ward(using: str, settings: Any) -> Ward:
    settings.TASKS = tasks(using)
    return Ward(using)


def told(ward: Ward) -> list[Finding]:
    found = examine(ward.using)
    for each in found:
        require_pasteable(each.remedy)
    return found


def codes(ward: Ward) -> list[str]:
    return [each.code for each in told(ward)]


def grow_old(ward: Ward) -> None:
    ward.age(ward.rows(ReadyExecution), created_at=20 * MINUTE)
    ward.age(ward.rows(ClaimedExecution), created_at=timedelta(seconds=20))


@on_every_database
def test_the_queue_behind_which_others_wait(using: str, ward: Ward) -> None:
    ward.claimed(3, queue_name="bulk")
    ward.ready(60, "bulk")
    for number in range(12):
        ward.ready(2, f"queue{number}")
    grow_old(ward)
    first, *others = told(ward)
    assert first.code == "backlog"
    assert '63 of the 87 jobs that wait or run are in queue "bulk"' in first.text
    assert "12 other queues wait beside it" in first.text
    assert '"queue0"' in first.text
    # Those that wait behind it are told of by a few.
    assert [each.code for each in others] == ["queue-slow"] * 5


@on_every_database
def test_the_tenant_behind_whom_others_wait(using: str, ward: Ward) -> None:
    for number in range(12):
        for key, count in (("acme", 6), (f"other{number}", 1)):
            ward.ready(count, f"queue{number}", fair_key=key, metadata=json.dumps({"fair": key}))
    grow_old(ward)
    first, *_ = told(ward)
    assert first.code == "backlog"
    assert "72 of the 84 jobs that wait or run have the key 'acme', in 12 queues" in first.text
    assert "queue-slow" in codes(ward)


@on_every_database
def test_the_task_behind_which_others_wait(using: str, ward: Ward) -> None:
    for number in range(12):
        ward.ready(6, f"queue{number}", task_path="tests.app.tasks.add")
        ward.ready(1, f"queue{number}")
    grow_old(ward)
    first, *_ = told(ward)
    assert first.code == "backlog"
    assert "72 of the 84 jobs that wait or run are of the task tests.app.tasks.add" in first.text


@on_every_database
def test_slow_queues_without_a_culprit(using: str, ward: Ward) -> None:
    for number in range(12):
        ward.ready(2, f"queue{number}", task_path=f"tests.app.tasks.{('noop', 'add')[number % 2]}")
    grow_old(ward)
    assert codes(ward) == ["queue-slow"] * 5


@on_every_database
def test_threads_that_are_stuck(using: str, ward: Ward) -> None:
    jobs = ward.claimed(2)
    ward.age(ward.rows(ClaimedExecution), created_at=20 * MINUTE)
    # Nobody waits for them.
    assert codes(ward) == []
    ward.ready(5)
    ward.age(ward.rows(ReadyExecution), created_at=10 * MINUTE)
    first, *others = told(ward)
    assert first.code == "threads-held"
    assert "2 of 3 threads of worker worker-1 (pid 17 on web-1)" in first.text
    assert "for up to 20 min" in first.text
    assert f"job {jobs[0].job_id}" in first.text
    assert f"steady_queue cancel {jobs[0].job_id}" in first.remedy
    assert "queue-slow" in [each.code for each in others]


@on_every_database
def test_a_worker_that_goes_on_has_no_stuck_threads(using: str, ward: Ward) -> None:
    ward.claimed(3)
    ward.ready(5)
    ward.age(ward.rows(ReadyExecution), created_at=10 * MINUTE)
    assert codes(ward) == ["queue-slow"]


def ended(ward: Ward, count: int, worker: str, *, failed: bool) -> None:
    ids = ward.failed(count) if failed else ward.finished(count)
    ward.rows(Job).filter(pk__in=ids).update(worker_ids=json.dumps(["elsewhere", worker]))


def start_on(ward: Ward, host: str, name: str) -> None:
    ward.start("worker", name, queues=["*"], threads=3)
    ward.processes.filter(name=name).update(hostname=host)


@on_every_database
def test_a_host_whose_jobs_fail(using: str, ward: Ward) -> None:
    start_on(ward, "web-2", "worker-2"), start_on(ward, "web-3", "worker-3")
    ended(ward, 40, "worker-2", failed=False), ended(ward, 2, "worker-2", failed=True)
    ended(ward, 2, "worker-3", failed=False), ended(ward, 30, "worker-3", failed=True)
    first, *_ = told(ward)
    assert first.code == "host-failing"
    assert "30 of 32 jobs that ended on host web-3 within an hour have failed" in first.text
    assert "2 of 42 on the other hosts" in first.text
    assert "ValueError" in first.text
    assert place(first) < place(Finding("failures-many", "warning", ""))


@on_every_database
def test_a_host_that_is_gone_has_failed_jobs(using: str, ward: Ward) -> None:
    ended(ward, 40, "worker-1", failed=False), ended(ward, 30, "gone", failed=True)
    present = ward.present(using)
    ward.rows(ProcessEnd).create(
        process_id=99, name="gone", kind="worker", pid=1, hostname="web-9", ended_at=present,
        reason="killed", held=0, lost=0,
    )  # fmt: skip
    assert "on host web-9" in told(ward)[0].text


@on_every_database
def test_failures_on_all_hosts_are_of_no_host(using: str, ward: Ward) -> None:
    start_on(ward, "web-2", "worker-2"), start_on(ward, "web-3", "worker-3")
    for worker in ("worker-2", "worker-3"):
        ended(ward, 5, worker, failed=False), ended(ward, 20, worker, failed=True)
    assert codes(ward) == ["failures-many"]
