"""Under routers that read from a replica, everything is written to the primary database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connections

from steady_queue_core import (
    change_recurring_task,
    schedule_recurring_task,
    unschedule_recurring_task,
)
from steady_queue_core.compat import task_backends
from steady_queue_core.models import (
    FailedExecution,
    Job,
    Pause,
    Queue,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
)
from steady_queue_core.schedules import definition as recurring_task

from ..aliases import added_alias
from .everywhere import Jobs, on_every_database
from .recurrence import BACKEND, DAY, greet

HOUR = timedelta(hours=1)
#: What has a session refuse to write.
READ_ONLY: dict[str, dict[str, Any]] = {
    "sqlite": {"init_command": "PRAGMA query_only = ON"},
    "postgresql": {"options": "-c default_transaction_read_only=on"},
    "mysql": {"init_command": "SET SESSION TRANSACTION READ ONLY"},
}


def replica_of(using: str) -> str:
    return f"replica_of_{using}"


class PrimaryReplicaRouter:
    """As Django's documentation has it."""

    def __init__(self, primary: str, replica: str) -> None:
        self.primary, self.replica = primary, replica

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return self.replica

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return self.primary

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return True


@pytest.fixture(autouse=True)
def _replica(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any
) -> Iterator[None]:
    """Have the database once more, and every read go there; it cannot be written to there."""
    monkeypatch.setattr(recurring_task, "_registry", {})
    connection = connections[using]
    kept = dict(connection.settings_dict)
    options = {**kept["OPTIONS"], **READ_ONLY[connection.vendor]}
    router = PrimaryReplicaRouter(using, replica_of(using))
    with added_alias(router.replica, {**kept, "OPTIONS": options}), django_db_blocker.unblock():
        settings.DATABASE_ROUTERS = [router]
        settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
        yield


@on_every_database
def test_the_replica_is_read_and_refuses_to_be_written_to(using: str) -> None:
    [pk] = Jobs(using).ready()
    job = Job.objects.get(pk=pk)
    assert job._state.db == replica_of(using)
    with pytest.raises(DatabaseError):
        job.save(using=replica_of(using))


@on_every_database
def test_jobs_that_were_read_from_it_are_changed_in_the_primary(using: str) -> None:
    jobs = Jobs(using)
    failed, [later], [unwanted] = jobs.failed(1), jobs.ready(delay=HOUR), jobs.ready()
    assert Job.objects.get(pk=failed[0]).retry()
    assert Job.objects.get(pk=later).run_now()
    Job.objects.get(pk=unwanted).discard()
    assert jobs.ids(ReadyExecution) == sorted([*failed, later])
    assert jobs.ids(Job) == sorted([*failed, later])


@on_every_database
def test_so_are_those_of_querysets_and_the_primary_is_where_they_are_looked_for(using: str) -> None:
    jobs = Jobs(using)
    jobs.failed(2), jobs.ready(2, delay=HOUR), jobs.finished(2)
    rows = Job.objects.exclude(task_path="none")
    assert rows.db == replica_of(using)
    assert rows.retry_failed() == 2
    assert rows.run_now() == 2
    assert Job.objects.clear_finished_in_batches(finished_before=jobs.present(using) + HOUR) == 2
    assert rows.discard() == 4
    assert jobs.ids(Job) == []


@on_every_database
def test_a_database_that_is_named_is_the_one_that_is_written_to(using: str) -> None:
    jobs = Jobs(using)
    jobs.failed(1), jobs.ready(1, delay=HOUR), jobs.finished(1)
    acts: list[Callable[[Any], Any]] = [
        lambda rows: rows.retry_failed(),
        lambda rows: rows.run_now(),
        lambda rows: rows.discard(),
        lambda rows: rows.clear_finished_in_batches(finished_before=jobs.present(using) + HOUR),
    ]
    for act in acts:
        with pytest.raises(DatabaseError):
            act(Job.objects.using(replica_of(using)))
    for model in (FailedExecution, ScheduledExecution):
        assert len(jobs.ids(model)) == 1
    assert len(jobs.ids(Job)) == 3


@on_every_database
def test_queues_are_paused_and_cleared_in_the_primary(using: str) -> None:
    Jobs(using).ready(2, "mail")
    queue = Queue("mail")
    assert queue.pause()
    assert (queue.paused, Pause.objects.using(using).count()) == (True, 1)
    assert queue.resume()
    assert queue.clear() == 2
    assert (queue.size, Queue.all()) == (0, [])


@on_every_database
def test_tasks_are_enqueued_to_the_primary_and_their_results_read_there(using: str) -> None:
    result = greet.enqueue()
    assert Job.objects.using(using).count() == 1
    assert task_backends["default"].get_result(result.id).id == result.id
    Jobs(using).claim(1)
    assert task_backends["default"].get_result(result.id).status == "RUNNING"


@on_every_database
def test_recurring_tasks_are_changed_and_run_in_the_primary(using: str) -> None:
    schedule_recurring_task("k", greet, schedule=DAY)
    row = RecurringTask.objects.get(key="k")
    assert row._state.db == replica_of(using)
    assert row.disable()
    assert row.enable()
    assert change_recurring_task("k", schedule=HOUR).schedule == "every hour"
    assert schedule_recurring_task("k", greet, schedule=DAY, replace=True).key == "k"
    assert RecurringTask.objects.get(key="k").run_now().id
    assert Job.objects.using(using).count() == 1
    unschedule_recurring_task("k")
    assert not RecurringTask.objects.using(using).exists()
    with pytest.raises(DatabaseError):
        row.disable(using=replica_of(using))


@on_every_database
def test_a_backend_with_a_database_of_its_own_removes_its_tasks_there(
    using: str, settings: Any
) -> None:
    """Whatever the routers say of the rest."""
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"database": using}}}
    settings.DATABASE_ROUTERS[0].primary = replica_of(using)
    schedule_recurring_task("k", greet, schedule=DAY)
    assert change_recurring_task("k", schedule=HOUR).schedule == "every hour"
    unschedule_recurring_task("k")
    assert not RecurringTask.objects.using(using).exists()
