"""A dispatcher wakes the workers when it has made jobs ready."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
from django.db import InternalError, connections, transaction

from steady_queue_core.configuration import Configuration
from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import limited_job, new_job
from steady_queue_core.dialects import Dialect, dialect_for, portable
from steady_queue_core.models import (
    BlockedExecution,
    FailedExecution,
    Permit,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.processes.base.context import ProcessContext
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable
from steady_queue_core.processes.base.events import Events
from steady_queue_core.processes.dispatcher.dispatcher import Dispatcher

from ..models.everywhere import Jobs, on_every_database, on_every_server
from ..models.recurrence import tasks


def dispatcher_of(using: str, **settings: Any) -> Dispatcher:
    events = Events("dispatcher", "dispatcher-1", using)
    context = SimpleNamespace(
        using=using,
        name="dispatcher-1",
        database=QueueDatabase(using),
        events=events,
        options=Configuration.Options().resolve(),
    )
    return Dispatcher(cast(ProcessContext, context), Configuration.Dispatcher(**settings))


@pytest.mark.django_db(transaction=True)
def test_listeners_are_notified_when_jobs_were_moved_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung: list[list[str]] = []

    def ring(self: Dialect, connection: Any, queue_names: Sequence[str]) -> None:
        rung.append(list(queue_names))

    monkeypatch.setattr(Dialect, "ring", ring)
    dispatcher = dispatcher_of("default")
    connection, dialect = connections["default"], dialect_for("default")
    dialect.enqueue(connection, [new_job(delay=timedelta(hours=1))])
    assert dispatcher._dispatch() > 0.5
    assert rung == []
    past = dialect.current_time(connection) - timedelta(seconds=1)
    ScheduledExecution.objects.update(due_at=portable.storable(past))
    dispatcher._dispatch()
    assert rung == [[]]
    dispatcher._dispatch()
    assert rung == [[]]


@on_every_database
def test_after_a_full_batch_it_looks_at_once_and_otherwise_when_the_next_is_due(using: str) -> None:
    interval = timedelta(seconds=40)
    dispatcher = dispatcher_of(using, batch_size=2, polling_interval=interval)
    connection, dialect = connections[using], dialect_for(using)
    assert dispatcher._dispatch() == 40.0
    dialect.enqueue(connection, [new_job(delay=timedelta(hours=1)) for _ in range(3)])
    past = portable.storable(dialect.current_time(connection) - interval)
    ScheduledExecution.objects.using(using).update(due_at=past)
    dialect.enqueue(connection, [new_job(delay=timedelta(seconds=20))])
    assert dispatcher._dispatch() == 0.0
    assert 0.0 < dispatcher._dispatch() <= 20.0
    assert ReadyExecution.objects.using(using).count() == 3


@on_every_server
def test_while_somebody_holds_all_that_is_due_it_looks_ever_more_rarely(using: str) -> None:
    dispatcher = dispatcher_of(using, polling_interval=0.1)
    connection, dialect = connections[using], dialect_for(using)
    dialect.enqueue(connection, [new_job(delay=timedelta(hours=1)) for _ in range(2)])
    past = portable.storable(dialect.current_time(connection) - timedelta(seconds=1))
    held, free = ScheduledExecution.objects.using(using).order_by("pk")
    ScheduledExecution.objects.using(using).update(due_at=past)
    holds, looked = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(using=using):
            row = ScheduledExecution.objects.using(using).filter(pk=held.pk)
            assert list(dialect.lock_rows(connections[using], row, wait=True))
            holds.set()
            assert looked.wait(20)

    holding = threads.start(using, hold)
    assert holds.wait(20)
    dispatcher._dispatch()
    assert [row.pk for row in ReadyExecution.objects.using(using).all()] == [free.pk]
    assert [dispatcher._dispatch() for _ in range(6)] == [0.01, 0.02, 0.04, 0.08, 0.1, 0.1]
    looked.set()
    holding.result(20)
    assert dispatcher._dispatch() == 0.1
    assert ReadyExecution.objects.using(using).count() == 2


@on_every_database
@pytest.mark.parametrize("wanted", [True, False])
def test_it_looks_after_limits_at_its_start_and_only_where_it_shall(
    using: str, wanted: bool
) -> None:
    connection, dialect = connections[using], dialect_for(using)
    for _ in range(2):
        dialect.enqueue(connection, [limited_job()])
    # As if a stranger had taken away the job that held the place.
    ReadyExecution.objects.using(using).all().delete()
    dispatcher = dispatcher_of(using, concurrency_maintenance=wanted)
    dispatcher._round()
    waiting = BlockedExecution.objects.using(using).count()
    assert (waiting, ReadyExecution.objects.using(using).count()) == ((0, 1) if wanted else (1, 0))
    assert Permit.objects.using(using).count() == 1
    ReadyExecution.objects.using(using).all().delete()
    dialect.enqueue(connection, [limited_job()])
    dispatcher._round()
    assert BlockedExecution.objects.using(using).count() == waiting + 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "error",
    [ValueError("no"), InternalError("no"), Unavailable(0.0, lost=False)],
    ids=["value", "refused", "locked"],
)
def test_a_duty_that_fails_is_left_alone_for_a_while_and_the_others_go_on(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        dialect_for("default").enqueue(connections["default"], [limited_job()])
    ReadyExecution.objects.all().delete()
    dispatcher, tried = dispatcher_of("default"), []

    def fail(*args: Any) -> float:
        tried.append(args)
        raise error

    with mock.patch.object(dispatcher.cleaner, "clean", fail):
        assert all(dispatcher._round() <= 1.0 for _ in range(2))
    assert not BlockedExecution.objects.exists()
    assert len(tried) == 1
    assert not dispatcher.context.database.was_unavailable(0.0)
    told = [record.__dict__.get("event") for record in caplog.records]
    assert told.count("dispatcher.duty_failed") == (not isinstance(error, Unavailable))


@pytest.mark.parametrize(
    ("using", "damage"),
    [
        pytest.param(
            using, damage, marks=pytest.mark.django_db(databases=[using], transaction=True)
        )
        for using, damage in [("default", "'2'"), ("postgres", "'-infinity'")]
    ],
)
def test_a_damaged_row_keeps_it_from_no_other_duty(
    using: str, damage: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.TASKS = tasks(using, clear_finished_jobs_after=60, clear_failed_jobs_after=60)
    jobs = Jobs(using)
    [damaged], [failed] = jobs.finished(), jobs.failed()
    past = portable.storable(jobs.present(using) - timedelta(days=1))
    FailedExecution.objects.using(using).update(created_at=past)
    with jobs.connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE steady_queue_jobs SET finished_at = {damage} WHERE id = %s", [damaged]
        )
    for _ in range(2):
        jobs.dialect.enqueue(jobs.connection, [limited_job()])
    ReadyExecution.objects.using(using).all().delete()
    dispatcher = dispatcher_of(using)

    dispatcher._round()

    assert not BlockedExecution.objects.using(using).exists()
    for _ in range(40):
        dispatcher._round()
    assert not jobs.all.filter(pk=failed).exists()
    assert jobs.all.filter(pk=damaged).exists()
    events = [record.__dict__.get("event") for record in caplog.records]
    assert 1 <= events.count("dispatcher.not_cleared") <= 2
    assert dispatcher.cleaner.clean(jobs.connection, jobs.dialect) > 0.0
