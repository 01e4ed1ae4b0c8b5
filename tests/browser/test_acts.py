"""Every act of the admin by clicks, with and without JavaScript."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from steady_queue_core import Batch
from steady_queue_core.models import (
    FailedExecution,
    Job,
    JobBatch,
    Pause,
    Queue,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
    Share,
)

from ..admin.places import HOUR
from ..app.tasks import noop
from ..core.driver import Driver
from .situation import LONG, Situation
from .tab import Tab

pytestmark = [pytest.mark.django_db(transaction=True)]


def page(model: str, key: Any = None) -> str:
    """Return the address of a list, or of the page of a row."""
    if key is None:
        return reverse(f"admin:steady_queue_{model}_changelist")
    return reverse(f"admin:steady_queue_{model}_change", args=[quote(str(key))])


def jobs(state: str) -> str:
    return f"{page('job')}?state={state}"


# --- jobs ---


def test_a_failed_job_is_retried_on_its_page(any_tab: Tab, situation: Situation) -> None:
    [job] = situation.failed(1)
    any_tab.open(page("job", job))
    any_tab.press("Retry")
    assert any_tab.messages == [f"Retried job #{job}."]
    assert situation.ids(ReadyExecution) == [job]


def test_a_scheduled_job_is_run_on_its_page(any_tab: Tab, situation: Situation) -> None:
    [job] = situation.ready(1, delay=HOUR)
    any_tab.open(page("job", job))
    any_tab.press("Run now")
    assert situation.ids(ReadyExecution) == [job]


def test_a_job_is_discarded_once_that_is_confirmed(any_tab: Tab, situation: Situation) -> None:
    [job] = situation.failed(1)
    any_tab.open(page("job", job))
    any_tab.press("Discard")
    any_tab.follow("No, take me back")
    assert situation.ids(Job) == [job]
    any_tab.press("Discard")
    any_tab.press("Yes, discard")
    assert any_tab.path == page("job")
    assert situation.ids(Job) == []


def test_a_job_is_cancelled_on_its_page(any_tab: Tab, situation: Situation) -> None:
    [job] = situation.ready(1)
    any_tab.open(page("job", job))
    any_tab.press("Cancel")
    any_tab.press("Yes, cancel")
    assert situation.ids(ReadyExecution) == []
    assert situation.ids(FailedExecution) == [job]


def test_a_job_is_moved_and_rescheduled_on_its_page(any_tab: Tab, situation: Situation) -> None:
    [job] = situation.ready(1, "mail", delay=HOUR)
    [row] = situation.rows(ScheduledExecution)
    any_tab.open(page("job", job))
    any_tab.press("Move")
    any_tab.fill("Queue", "bulk")
    any_tab.press("Yes, move")
    assert situation.all.get(pk=job).queue_name == "bulk"
    any_tab.press("Reschedule")
    any_tab.press("Yes, reschedule")
    assert "Give a time, or how long from now" in any_tab.text
    any_tab.fill("Or in", "2 00:00:00")
    any_tab.press("Yes, reschedule")
    [moved] = situation.rows(ScheduledExecution)
    assert moved.queue_name == "bulk"
    assert HOUR * 46 < moved.due_at - row.due_at < HOUR * 48


def test_a_job_is_enqueued_again_on_its_page(any_tab: Tab, situation: Situation) -> None:
    job = int(noop.enqueue().id)
    Driver("default").work()
    any_tab.open(page("job", job))
    any_tab.press("Enqueue again")
    any_tab.press("Yes, enqueue again")
    [copy] = situation.ids(ReadyExecution)
    assert copy != job
    assert situation.all.get(pk=copy).task_path == situation.all.get(pk=job).task_path


def test_ticked_jobs_are_moved(any_tab: Tab, situation: Situation) -> None:
    first, second = situation.ready(2, "mail")
    any_tab.open(jobs("ready"))
    any_tab.tick(f"#{first}")
    any_tab.choose("Move selected jobs to another queue or priority")
    any_tab.fill("Queue", "bulk")
    any_tab.press("Yes, move")
    assert situation.all.get(pk=first).queue_name == "bulk"
    assert situation.all.get(pk=second).queue_name == "mail"


def test_a_list_is_exported(any_tab: Tab, situation: Situation) -> None:
    failed = situation.failed(2)
    situation.ready(1)
    any_tab.open(jobs("failed"))
    lines = any_tab.download("Export as JSON lines").splitlines()
    assert sorted(json.loads(each)["id"] for each in lines) == sorted(failed)


def test_ticked_jobs_are_retried(any_tab: Tab, situation: Situation) -> None:
    first, second, third = situation.failed(3)
    any_tab.open(jobs("failed"))
    any_tab.tick(f"#{first}")
    any_tab.tick(f"#{third}")
    any_tab.choose("Retry selected jobs")
    assert any_tab.messages == ["Retried 2 jobs."]
    assert situation.ids(ReadyExecution) == [first, third]
    assert situation.ids(FailedExecution) == [second]


def test_ticked_jobs_are_run_and_cancelled_and_discarded(
    any_tab: Tab, situation: Situation
) -> None:
    run, cancelled, discarded = situation.ready(3, delay=HOUR)
    any_tab.open(jobs("scheduled"))
    any_tab.tick(f"#{run}")
    any_tab.choose("Run selected jobs now")
    assert situation.ids(ReadyExecution) == [run]
    any_tab.tick(f"#{cancelled}")
    any_tab.choose("Cancel selected jobs")
    any_tab.press("Yes, cancel")
    assert situation.ids(FailedExecution) == [cancelled]
    any_tab.tick(f"#{discarded}")
    any_tab.choose("Discard selected jobs")
    any_tab.press("Yes, discard")
    assert situation.ids(ScheduledExecution) == []
    assert situation.ids(Job) == [run, cancelled]


def test_all_jobs_of_a_list_are_retried_not_only_those_of_the_page(
    tab: Tab, situation: Situation
) -> None:
    failed = sorted(situation.failed(51))
    tab.open(jobs("failed"))
    tab.do(lambda page: page.locator("#action-toggle").check())
    tab.do(lambda page: page.get_by_role("button", name="Select all 51 jobs").click())
    tab.choose("Retry selected jobs")
    assert "Retry 51 failed jobs?" in tab.text
    tab.press("Yes, retry")
    assert situation.ids(ReadyExecution) == failed
    assert not tab.take_troubles()


def test_an_error_group_is_retried_as_a_whole(any_tab: Tab, situation: Situation) -> None:
    orders = [situation.fail(f"no order {number}") for number in (1, 2)]
    other = situation.fail("no customer")
    any_tab.open(jobs("failed"))
    any_tab.follow("Error groups")
    any_tab.press("Retry all 2")
    any_tab.press("Yes, retry")
    assert situation.ids(ReadyExecution) == sorted(orders)
    assert situation.ids(FailedExecution) == [other]


# --- queues ---


@pytest.mark.parametrize("name", ["mail", LONG], ids=["short", "long"])
def test_a_queue_is_paused_resumed_and_cleared_on_its_page(
    any_tab: Tab, situation: Situation, name: str
) -> None:
    situation.ready(2, name)
    [other] = situation.ready(1, "other")
    any_tab.open(page("pause", name))
    any_tab.press("Pause")
    assert list(situation.rows(Pause).values_list("pk", flat=True)) == [name]
    any_tab.press("Resume")
    assert not situation.rows(Pause).exists()
    any_tab.press("Clear")
    any_tab.press("Yes, clear")
    assert situation.ids(Job) == [other]


def test_ticked_queues_are_paused_resumed_and_cleared(any_tab: Tab, situation: Situation) -> None:
    situation.ready(2, "letters")
    any_tab.open(page("pause"))
    any_tab.tick("letters")
    any_tab.choose("Pause selected queues")
    assert any_tab.messages == ["Paused: letters."]
    assert list(situation.rows(Pause).values_list("pk", flat=True)) == ["letters"]
    any_tab.tick("letters")
    any_tab.choose("Resume selected queues")
    assert not situation.rows(Pause).exists()
    any_tab.tick("letters")
    any_tab.choose("Clear selected queues of ready jobs")
    any_tab.press("Yes, clear")
    assert situation.ids(Job) == []


def test_a_queue_is_paused_and_resumed_on_the_overview(any_tab: Tab, situation: Situation) -> None:
    situation.ready(1, "mail")
    any_tab.open(page("overview"))
    any_tab.press("Pause mail")
    assert any_tab.path == page("overview")
    assert Queue("mail").paused
    any_tab.press("Resume mail")
    assert not Queue("mail").paused


def test_an_error_group_is_retried_on_the_overview(any_tab: Tab, situation: Situation) -> None:
    orders = [situation.fail(f"no order {number}") for number in (1, 2)]
    any_tab.open(page("overview"))
    any_tab.press("Retry all 2")
    any_tab.press("Yes, retry")
    assert situation.ids(ReadyExecution) == sorted(orders)


# --- recurring tasks ---


def test_a_recurring_task_is_run_disabled_and_enabled_on_its_page(
    any_tab: Tab, situation: Situation
) -> None:
    row = situation.schedule("daily")
    any_tab.open(page("recurringtask", "daily"))
    any_tab.press("Run now")
    [job] = situation.ids(ReadyExecution)
    assert any_tab.messages == [f"Enqueued as job #{job}: daily."]
    for button, enabled in (("Disable", False), ("Enable", True)):
        any_tab.press(button)
        row.refresh_from_db()
        assert row.enabled is enabled


def test_ticked_recurring_tasks_are_run_disabled_and_enabled(
    any_tab: Tab, situation: Situation
) -> None:
    situation.schedule("daily")
    situation.schedule("hourly")
    enabled = situation.rows(RecurringTask).filter(enabled=True)
    any_tab.open(page("recurringtask"))
    any_tab.tick("daily")
    any_tab.choose("Disable selected tasks")
    assert [each.key for each in enabled.all()] == ["hourly"]
    any_tab.tick_all()
    any_tab.choose("Enable selected tasks")
    assert enabled.count() == 2
    any_tab.tick_all()
    any_tab.choose("Run selected tasks now")
    assert len(situation.ids(ReadyExecution)) == 2


# --- batches ---


def test_a_batch_is_cancelled_and_retried_on_its_page(any_tab: Tab, situation: Situation) -> None:
    batch = batch_of(2)
    any_tab.open(page("jobbatch", batch.id))
    any_tab.press("Cancel")
    any_tab.press("Yes, cancel")
    assert status_of(batch) == "cancelled"
    any_tab.press("Retry")
    any_tab.press("Yes, retry")
    Driver("default").work()
    assert status_of(batch) == "succeeded"


def test_ticked_batches_are_cancelled_and_retried(any_tab: Tab, situation: Situation) -> None:
    batch, other = batch_of(1), batch_of(1)
    any_tab.open(page("jobbatch"))
    any_tab.tick(f"#{batch.id}")
    any_tab.choose("Cancel selected batches")
    any_tab.press("Yes, cancel")
    ended = situation.rows(JobBatch).filter(cancelled_at__isnull=False)
    assert list(ended.values_list("pk", flat=True)) == [batch.id]
    any_tab.tick(f"#{batch.id}")
    any_tab.choose("Retry selected batches")
    any_tab.press("Yes, retry")
    Driver("default").work()
    assert status_of(batch) == status_of(other) == "succeeded"


def batch_of(count: int) -> Batch:
    with Batch("import") as batch:
        for _ in range(count):
            noop.enqueue()
    return batch


def status_of(batch: Batch) -> str:
    batch.refresh()
    return batch.status.value


# --- shares ---


def test_a_share_is_added_changed_and_deleted(any_tab: Tab, situation: Situation) -> None:
    any_tab.open(page("share"))
    any_tab.follow("Add share")
    any_tab.fill("Queue", "mail")
    any_tab.fill("Key", "tenant-1")
    any_tab.fill("Weight", "5")
    any_tab.press("Save")
    assert weights(situation) == [("mail", "tenant-1", 5.0)]
    any_tab.follow("mail")
    any_tab.fill("Weight", "2.5")
    any_tab.press("Save")
    assert weights(situation) == [("mail", "tenant-1", 2.5)]
    any_tab.follow("mail")
    any_tab.follow_deletion()
    any_tab.press("Yes, I\u2019m sure")
    assert weights(situation) == []


def weights(situation: Situation) -> list[tuple[str, str, float]]:
    return list(situation.rows(Share).values_list("queue_name", "key", "weight"))


def test_ticked_shares_get_the_default_weight(any_tab: Tab, situation: Situation) -> None:
    for number, key in enumerate(("tenant-1", "tenant-2")):
        situation.rows(Share).create(queue_name="mail", key=key, weight=number + 2)
    any_tab.open(page("share"))
    any_tab.tick("tenant-1")
    any_tab.choose("Give selected keys the default weight")
    any_tab.press("Yes, delete")
    assert [each.key for each in situation.rows(Share)] == ["tenant-2"]
