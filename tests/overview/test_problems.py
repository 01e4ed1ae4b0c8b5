"""Situations that an operator meets at night: each is named first, with the page that helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from steady_queue_core.conformance.base import limited_job
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    Process,
    Queue,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
)
from steady_queue_core.overview import busy
from steady_queue_core.statistics.tally import RECENT_HOUR

from ..admin.places import tasks_in
from ..doctor.pasting import require_pasteable
from ..doctor.ward import HOUR, MINUTE, TASK
from ..models.everywhere import on_every_database
from .planting import Garden


class Situation(NamedTuple):
    """Something that goes wrong, and how it is told."""

    plant: Callable[[Garden, Any], object]
    code: str
    page: str
    key: str = ""


SITUATIONS: list[Situation] = []


def situation(code: str, page: str, key: str = "") -> Callable[[Any], Any]:
    """Add a function that plants a situation to the table."""

    def add(plant: Any) -> Any:
        SITUATIONS.append(Situation(plant, code, page, key))
        return plant

    return add


@situation("queue-unserved", "processes")
def a_queue_that_no_worker_serves(garden: Garden, settings: Any) -> None:
    garden.stop("worker")
    garden.start("worker", queues=["default"], threads=3)
    garden.ready(2, "mail")


@situation("queue-unserved", "processes")
def a_queue_whose_worker_is_silent(garden: Garden, settings: Any) -> None:
    garden.ready(1)
    garden.silence("worker")


@situation("process-none", "processes")
def no_process_at_all(garden: Garden, settings: Any) -> None:
    garden.stop("supervisor", "worker", "dispatcher", "scheduler")
    garden.ready(2)


@situation("process-none", "processes")
def a_host_that_is_gone(garden: Garden, settings: Any) -> None:
    garden.claimed(1)
    for kind in ("supervisor", "worker", "dispatcher", "scheduler"):
        garden.silence(kind)


@situation("supervisor-missing", "processes")
def no_supervisor(garden: Garden, settings: Any) -> None:
    garden.stop("supervisor")


@situation("scheduler-missing", "processes")
def a_dead_scheduler(garden: Garden, settings: Any) -> None:
    schedule(garden)
    garden.stop("scheduler")


@situation("dispatcher-missing", "processes")
def a_dead_dispatcher(garden: Garden, settings: Any) -> None:
    garden.stop("dispatcher")
    overdue(garden)


@situation("dispatcher-late", "jobs")
def a_dispatcher_that_hangs(garden: Garden, settings: Any) -> None:
    overdue(garden)


@situation("claim-stale", "processes")
def a_worker_that_died_with_a_job(garden: Garden, settings: Any) -> None:
    garden.claimed(1)
    garden.start("worker", "worker-2", queues=["*"], threads=3)
    garden.age(garden.processes.filter(pk=garden.worker.id), last_heartbeat_at=HOUR)


@situation("process-stale", "processes")
def a_process_that_is_gone(garden: Garden, settings: Any) -> None:
    garden.start("worker", "worker-2", queues=["*"], threads=3)
    garden.age(garden.processes.filter(name="worker-2"), last_heartbeat_at=HOUR)


@situation("heartbeat-late", "processes")
def a_worker_that_is_starved(garden: Garden, settings: Any) -> None:
    garden.silence("worker", 4 * MINUTE)


@situation("clock-set-back", "processes")
def a_clock_that_was_set_back(garden: Garden, settings: Any) -> None:
    garden.silence("worker", -HOUR)


@situation("clock-skew", "processes")
def a_clock_that_is_off(garden: Garden, settings: Any) -> None:
    real = busy.host_time
    settings.PATCH.setattr(busy, "host_time", lambda: real() - timedelta(seconds=90))


@situation("versions-differ", "processes")
def a_process_of_the_last_release(garden: Garden, settings: Any) -> None:
    garden.start("worker", "worker-2", queues=["*"], threads=3)
    rows = garden.processes.filter(name="worker-2")
    rows.update(metadata=json.dumps({"version": "0.0.1", "queues": ["*"]}))


@situation("queue-paused", "queue", "mail")
def a_paused_queue(garden: Garden, settings: Any) -> None:
    garden.ready(3, "mail")
    Queue("mail", garden.using).pause()


@situation("queue-slow", "jobs", "mail")
def a_queue_that_does_not_keep_up(garden: Garden, settings: Any) -> None:
    garden.ready(3, "mail")
    garden.age(garden.rows(ReadyExecution), created_at=HOUR)


@situation("queue-full", "jobs", "mail")
def a_queue_that_takes_no_more(garden: Garden, settings: Any) -> None:
    tasks = tasks_in(garden.using)
    tasks["default"]["OPTIONS"]["queue_limits"] = {"mail": 3}
    settings.TASKS = tasks
    garden.ready(3, "mail")


@situation("limit-busy", "semaphores")
def a_limit_that_is_full(garden: Garden, settings: Any) -> None:
    jobs = [limited_job("account:7", 1, task_path=TASK) for _ in range(3)]
    garden.dialect.enqueue(garden.connection, jobs)
    garden.age(garden.rows(BlockedExecution), created_at=HOUR)


@situation("failures-many", "errors")
def a_failing_deploy(garden: Garden, settings: Any) -> None:
    for ago in range(12, 60):
        garden.count(ago, finished=20)
    garden.count(5, failed=15, finished=10)


@situation("failures-many", "errors")
def a_project_that_has_always_failed(garden: Garden, settings: Any) -> None:
    garden.count(2, failed=15, finished=3)


@situation("attempts-lost", "ended")
def workers_that_are_killed(garden: Garden, settings: Any) -> None:
    garden.count(30, lost=2, finished=100)


@situation("claim-long", "job", "...")
def a_stuck_job(garden: Garden, settings: Any) -> None:
    garden.claimed(1)
    garden.age(garden.rows(ClaimedExecution), created_at=3 * HOUR)


@situation("claim-long", "job", "...")
def a_job_that_takes_much_longer_than_usual(garden: Garden, settings: Any) -> None:
    garden.count(5, "default", "conformance.tasks.work", finished=50, runs=2_000)
    garden.claimed(1, task_path="conformance.tasks.work")
    garden.age(garden.rows(ClaimedExecution), created_at=6 * MINUTE)


def schedule(garden: Garden) -> None:
    present = garden.present(garden.using)
    garden.rows(RecurringTask).create(
        key="daily", task_path="tests.app.tasks.noop", schedule="0 6 * * *", timezone="UTC",
        arguments='{"args":[],"kwargs":{}}', backend_name="default", queue_name="default",
        created_at=present, updated_at=present,
    )  # fmt: skip


def overdue(garden: Garden) -> None:
    garden.ready(2, delay=HOUR)
    garden.age(garden.rows(ScheduledExecution), due_at=10 * MINUTE)


@pytest.mark.parametrize("planted", SITUATIONS, ids=lambda each: each.plant.__name__)
@pytest.mark.django_db(transaction=True)
def test_a_situation_is_told_first_with_the_page_that_helps(
    planted: Situation, garden: Garden, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert garden.problems == []
    settings.PATCH = monkeypatch
    planted.plant(garden, settings)
    for problem in garden.look().problems:
        require_pasteable(problem.finding.remedy)
    code, page, key = garden.problems[0]
    assert (code, page) == (planted.code, planted.page)
    assert key == planted.key or (planted.key == "..." and int(key) > 0)


def test_there_are_enough_situations() -> None:
    assert len(SITUATIONS) >= 20


@on_every_database
def test_a_busy_queue_that_is_well_has_no_problems(using: str, garden: Garden) -> None:
    schedule(garden)
    garden.failed(3), garden.finished(3), garden.claimed(2)
    garden.ready(20, "mail"), garden.ready(3, delay=HOUR)
    garden.dialect.enqueue(
        garden.connection, [limited_job("account:7", 1, task_path=TASK) for _ in range(3)]
    )
    Queue("empty", using).pause()
    for ago in range(0, 60):
        garden.count(ago, finished=20, failed=1, retried=1, enqueued=20)
    garden.count(300, span=RECENT_HOUR, finished=1000, failed=50)
    assert garden.problems == []
    garden.ready(1, "empty")
    assert garden.problems == [("queue-paused", "queue", "empty")]


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_nobody_has_begun_to_use_has_no_problems(garden: Garden) -> None:
    garden.stop("supervisor", "worker", "dispatcher", "scheduler")
    assert garden.problems == []


@pytest.mark.django_db(transaction=True)
def test_as_many_failures_as_usual_are_no_problem(garden: Garden) -> None:
    for ago in range(60):
        garden.count(ago, finished=10, failed=10)
    assert garden.problems == []


@on_every_database
def test_a_job_that_runs_for_long_is_told_in_any_scope(using: str, garden: Garden) -> None:
    a_job_that_takes_much_longer_than_usual(garden, None)
    for scope in ({}, {"queue": "mail"}, {"task": "other"}):
        seen = garden.look(**scope)
        assert [each.finding.code for each in seen.problems] == ["claim-long"]
        assert len(seen.longest) == (not scope)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_has_just_begun_is_not_stuck(garden: Garden) -> None:
    a_job_that_takes_much_longer_than_usual(garden, None)
    garden.age(garden.rows(ClaimedExecution), created_at=4 * MINUTE)
    assert garden.problems == []


@pytest.mark.django_db(transaction=True)
def test_a_few_attempts_tell_nothing_of_how_long_a_job_takes(garden: Garden) -> None:
    garden.count(5, "default", "conformance.tasks.work", finished=19, runs=2_000)
    garden.claimed(1, task_path="conformance.tasks.work")
    garden.age(garden.rows(ClaimedExecution), created_at=6 * MINUTE)
    assert garden.problems == []


@pytest.mark.django_db(transaction=True)
def test_what_a_cause_explains_is_not_told_once_more(garden: Garden) -> None:
    a_worker_that_died_with_a_job(garden, None)
    garden.age(garden.rows(ClaimedExecution), created_at=3 * HOUR)
    assert "claim-long" not in {code for code, *_ in garden.problems}
    no_process_at_all(garden, None)
    assert "queue-unserved" not in {code for code, *_ in garden.problems}


@pytest.mark.django_db(transaction=True)
def test_the_hour_of_the_last_minutes_is_not_usual(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (Garden, busy.Moment):
        monkeypatch.setattr(each, "minute", 60 * 490_000 + 5)
    garden.count(7, failed=15), garden.count(30, finished=15)
    garden.count(7, span=RECENT_HOUR, failed=15, finished=15)
    assert [code for code, *_ in garden.problems] == ["failures-many"]


@pytest.mark.django_db(transaction=True)
def test_minutes_that_are_summed_up_are_usual_once(garden: Garden) -> None:
    garden.count(5, failed=12, finished=88)
    garden.count(300, span=RECENT_HOUR, failed=10, finished=90)
    garden.count(50, finished=100)
    garden.count(50, span=RECENT_HOUR, finished=100)
    assert garden.problems == []


@pytest.mark.django_db(transaction=True)
def test_a_few_queues_with_a_problem_stand_for_many(garden: Garden, settings: Any) -> None:
    tasks = tasks_in(garden.using)
    tasks["default"]["OPTIONS"]["queue_limits"] = {f"q{number}": 1 for number in range(7)}
    settings.TASKS = tasks
    for number in range(7):
        garden.ready(1, f"q{number}")
    assert [code for code, *_ in garden.problems] == ["queue-full"] * 5


@pytest.mark.django_db(transaction=True)
def test_several_problems_come_in_the_order_of_what_they_explain(garden: Garden) -> None:
    for plant in (a_stuck_job, a_paused_queue, no_supervisor, workers_that_are_killed):
        plant(garden, None)
    assert [code for code, *_ in garden.problems] == [
        "queue-paused", "supervisor-missing", "claim-long", "attempts-lost",
    ]  # fmt: skip
    texts = [each.finding.text for each in garden.look().problems]
    assert texts[0].startswith('3 jobs wait in queue "mail", which is paused')
    assert "has been running for 3 h" in texts[2]
    assert texts[3].startswith("2 attempts were lost")


@pytest.mark.django_db(transaction=True)
def test_damaged_rows_hide_no_other_problem(garden: Garden) -> None:
    garden.ready(1, "mail")
    Queue("mail", garden.using).pause()
    with garden.connection.cursor() as cursor:
        cursor.execute("UPDATE steady_queue_pauses SET created_at = 'yesterday'")
        cursor.execute("UPDATE steady_queue_processes SET metadata = '[]', created_at = 'x'")
        cursor.execute("UPDATE steady_queue_ready_executions SET created_at = 'x'")
    Process.objects.filter(name="dispatcher-1").update(last_heartbeat_at="9999-12-31T23:59:59Z")
    codes = [code for code, *_ in garden.problems]
    assert codes == ["clock-set-back", "queue-paused"]
