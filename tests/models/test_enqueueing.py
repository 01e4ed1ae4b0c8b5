"""Enqueueing beside the transactions of the project, on every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction
from django.utils import timezone

from steady_queue_core import call, enqueue_many, task
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution

from ..app.models import Item
from ..servers.kinds import KINDS
from .everywhere import Jobs, on_every_database
from .recurrence import tasks


@task(queue_name="mail", priority=7)
def send(number: int) -> None:
    """Have a queue and a priority."""


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


def ids(model: Any, using: str) -> list[int]:
    return sorted(model.objects.using(using).values_list("pk", flat=True))


@pytest.mark.parametrize(
    "using",
    [
        pytest.param(
            alias, marks=pytest.mark.django_db(databases=["default", alias], transaction=True)
        )
        for alias in KINDS
    ],
)
def test_what_another_database_takes_back_does_not_concern_the_job(using: str) -> None:
    with transaction.atomic():
        Item.objects.create(name="taken back")
        result = send.enqueue(1)
        transaction.set_rollback(True)
    assert not Item.objects.exists()
    assert ids(ReadyExecution, using) == [int(result.id)]
    with transaction.atomic(using=using):
        send.enqueue(2)
        Item.objects.create(name="kept")
        transaction.set_rollback(True, using=using)
    assert Item.objects.get().name == "kept"
    assert ids(Job, using) == [int(result.id)]


@on_every_database
def test_an_error_of_the_database_is_told_as_it_is_and_nothing_is_stored(using: str) -> None:
    with transaction.atomic(using=using):
        transaction.set_rollback(True, using=using)
        with pytest.raises(DatabaseError):
            send.enqueue(1)
        with pytest.raises(DatabaseError):
            enqueue_many([call(send, 1), call(send, 2)])
    assert ids(Job, using) == []
    assert send.enqueue(3).id


@on_every_database
def test_many_calls_are_stored_in_their_states_with_queue_and_priority(using: str) -> None:
    past, future = datetime(2001, 2, 3, tzinfo=UTC), datetime(2101, 2, 3, tzinfo=UTC)
    kinds = [send, send.using(run_after=future), send.using(run_after=past, priority=-1)]
    now, later, overdue = (
        int(result.id) for result in enqueue_many([call(kind, 1) for kind in kinds])
    )
    ready = ReadyExecution.objects.using(using).order_by("pk")
    assert list(ready.values_list("pk", "queue_name", "rank")) == [
        (now, "mail", -7),
        (overdue, "mail", 1),
    ]
    scheduled = ScheduledExecution.objects.using(using).get()
    assert (scheduled.pk, scheduled.queue_name, scheduled.rank) == (later, "mail", -7)
    present = Jobs(using).dialect.current_time(connections[using])
    enqueued_at = Job.objects.using(using).get(pk=now).enqueued_at.replace(tzinfo=UTC)
    assert present - timedelta(minutes=1) < enqueued_at <= present


@on_every_database
def test_a_result_has_the_time_that_was_asked_for_though_it_is_past(using: str) -> None:
    present = Jobs.present(using)
    for run_after in (present - timedelta(days=400), present + timedelta(days=400)):
        result = send.using(run_after=run_after).enqueue(1)
        assert send.get_result(result.id).task.run_after == run_after
    assert send.get_result(send.enqueue(1).id).task.run_after is None
    assert len(ids(ScheduledExecution, using)) == 1


@pytest.mark.parametrize(
    "using", [pytest.param("default", marks=pytest.mark.django_db(transaction=True))]
)
def test_on_sqlite_what_is_for_now_is_ready_at_once(using: str) -> None:
    """Its clock knows milliseconds, the caller's microseconds."""
    for _ in range(200):
        send.using(run_after=timezone.now()).enqueue(1)
    assert ids(ScheduledExecution, using) == []
    assert len(ids(ReadyExecution, using)) == 200
