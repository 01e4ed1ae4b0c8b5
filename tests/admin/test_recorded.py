"""What must not be done twice by mistake is stored together with its record in the admin's log."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import OperationalError

from steady_queue_core.admin import actions
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.models import Job, RecurringTask

from ..app.tasks import noop
from .places import Scene, on_every_database
from .test_actions import confirm
from .visitor import Visitor


@pytest.fixture
def locked_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody write into the admin's log."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(type(LogEntry.objects), "bulk_create", refuse)


def copy(visitor: Visitor, job_id: int) -> Any:
    question = visitor.act("enqueue_again", [job_id], state="finished")
    return confirm(visitor, question, visitor.url("job"), state="finished")


RIGHTS = ("view_job", "enqueue_job")


@on_every_database
def test_a_job_is_not_copied_twice_because_the_log_was_locked(
    using: str, scene: Scene, locked_log: None, caplog: pytest.LogCaptureFixture
) -> None:
    [job_id] = scene.finished(1)
    visitor = Visitor(*RIGHTS)
    with caplog.at_level(logging.ERROR, "steady_queue.admin"):
        page = copy(visitor, job_id)
    number = Job.objects.using(using).count()
    if using == "default":
        # Nothing was done, and the user is told so.
        assert number == 1
        assert "the database was busy" in page.messages[1]
    else:
        # It was done, and the user does not do it again.
        assert number == 2
        assert page.messages == ["Enqueued again 1 job."]
        assert [each.message for each in caplog.records] == ["The admin's log lacks an action"]


@pytest.mark.django_db(transaction=True)
def test_a_recurring_task_does_not_run_twice_because_the_log_was_locked(
    scene: Scene, locked_log: None
) -> None:
    schedule_recurring_task("daily", noop, schedule="0 6 * * *")
    visitor = Visitor("view_recurringtask", "run_recurringtask")
    with pytest.raises(OperationalError):
        visitor.act("run_now", ["daily"], model="recurringtask")
    assert not Job.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_action_on_very_many_recurring_tasks_stops_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abc":
        schedule_recurring_task(key, noop, schedule="0 6 * * *")
    monkeypatch.setattr(actions, "TIME_LIMIT", -1.0)
    visitor = Visitor("view_recurringtask", "change_recurringtask", "delete_recurringtask")
    page = visitor.act("disable", ..., model="recurringtask")
    stopped = (
        "Stopped after -1 seconds and 1 recurring tasks. b and those after it in the list are left "
        "as they were: choose these."
    )
    assert page.messages == ["Disabled: a.", stopped]
    assert [*RecurringTask.objects.filter(enabled=True).values_list("pk", flat=True)] == ["b", "c"]
    question = visitor.act("remove", ..., model="recurringtask")
    page = confirm(visitor, question, visitor.url("recurringtask"))
    assert page.messages == ["Removed: a.", stopped]
    assert RecurringTask.objects.count() == 2
