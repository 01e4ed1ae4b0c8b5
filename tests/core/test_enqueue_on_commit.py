"""``enqueue_on_commit``: with the caller's transaction, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import connection, connections, transaction

from steady_queue_core.compat import Task, TaskResultDoesNotExist, TaskResultStatus
from steady_queue_core.models import Job

from .driver import Driver
from .samples import (
    OURS,
    Recorder,
    configured,
    echo,
    nothing,
    real_transactions,
)


def _by_the_decorator(settings: Any) -> Task:
    return configured


def _by_using(settings: Any) -> Task:
    return echo.using(enqueue_on_commit=True)


def _by_options(settings: Any) -> Task:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"enqueue_on_commit": True}}}
    return nothing


on_commit = pytest.mark.parametrize("choose", [_by_the_decorator, _by_using, _by_options])


@real_transactions
@on_commit
def test_on_commit_the_job_is_enqueued(
    settings: Any, recorders: dict[str, Recorder], choose: Callable[[Any], Task]
) -> None:
    waiting = choose(settings)
    with transaction.atomic():
        result = waiting.enqueue()
        assert (result.id, result.enqueued_at) == ("", None)
        assert result.status == TaskResultStatus.READY
        with pytest.raises(TaskResultDoesNotExist):
            result.refresh()
        assert not Job.objects.exists()
        assert not recorders["enqueued"].calls
    assert result.id == str(Job.objects.get().pk)
    assert len(recorders["enqueued"].calls) == 1
    assert waiting.get_result(result.id).enqueued_at == result.enqueued_at
    assert Driver().finish(result).status == TaskResultStatus.SUCCESSFUL


@real_transactions
@on_commit
def test_on_rollback_nothing_is_enqueued(settings: Any, choose: Callable[[Any], Task]) -> None:
    waiting = choose(settings)
    with transaction.atomic():
        result = waiting.enqueue()
        transaction.set_rollback(True)
    assert result.id == ""
    assert not Job.objects.exists()


@real_transactions
@on_commit
def test_outside_a_transaction_there_is_nothing_to_wait_for(
    settings: Any, choose: Callable[[Any], Task]
) -> None:
    waiting = choose(settings)
    for result in (waiting.enqueue(), async_to_sync(waiting.aenqueue)()):
        assert waiting.get_result(result.id).enqueued_at == result.enqueued_at


@real_transactions
def test_using_can_ask_not_to_wait() -> None:
    with transaction.atomic():
        assert configured.using(enqueue_on_commit=False).enqueue().id


@real_transactions
@on_commit
def test_the_scheduler_does_not_wait(settings: Any, choose: Callable[[Any], Task]) -> None:
    """Its slot and its job are in one transaction: no kill can come between them."""
    task = choose(settings)
    with transaction.atomic():
        assert Job.objects.filter(pk=task.get_backend().enqueue_now(task, [], {}).id).exists()
        transaction.set_rollback(True)
    assert not Job.objects.exists()


@real_transactions
def test_arguments_are_taken_when_the_task_is_enqueued() -> None:
    box = [1]
    with transaction.atomic():
        result = echo.using(enqueue_on_commit=True).enqueue(box)
        box.append(2)
    assert echo.get_result(result.id).args == [[1]]
    with transaction.atomic(), pytest.raises(TypeError, match=r"args\[0\] cannot be stored"):
        echo.using(enqueue_on_commit=True).enqueue(object())


@pytest.fixture
def second_database(tmp_path: Path, settings: Any) -> Iterator[str]:
    """A database of the queue's own, beside the project's."""
    connections.settings["queue"] = {
        **connections.settings["default"],
        "NAME": str(tmp_path / "queue.sqlite3"),
    }
    try:
        # Once it is open, the framework has no objection to a database that it does not know.
        connections["queue"].connect()
        with connections["queue"].schema_editor() as editor:
            for model in apps.get_app_config("steady_queue").get_models():
                if not model._meta.proxy:
                    editor.create_model(model)
        settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": "queue"}}}
        yield "queue"
    finally:
        connections["queue"].close()
        del connections["queue"]
        del connections.settings["queue"]


@real_transactions
def test_jobs_can_live_in_a_database_of_their_own(second_database: str) -> None:
    with transaction.atomic():
        kept = echo.enqueue(1)
        dropped = echo.using(enqueue_on_commit=True).enqueue(2)
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert [str(job.pk) for job in Job.objects.using("queue")] == [kept.id]
    assert dropped.id == ""
    with transaction.atomic():
        waiting = echo.using(enqueue_on_commit=True).enqueue(3)
        assert waiting.id == ""
    assert echo.get_result(waiting.id).args == [3]
    driver = Driver("queue")
    assert driver.finish(kept).return_value == [[1], {}]
    assert connections["queue"].settings_dict["NAME"] != connection.settings_dict["NAME"]


@real_transactions
def test_a_transaction_of_the_queue_database_is_waited_for_as_well(second_database: str) -> None:
    with transaction.atomic(using="queue"):
        result = echo.using(enqueue_on_commit=True).enqueue()
        assert result.id == ""
    assert echo.get_result(result.id).enqueued_at == result.enqueued_at
