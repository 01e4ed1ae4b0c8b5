"""What can be done in the lists and on the pages of jobs and queues."""

from __future__ import annotations

import logging
from typing import Any
from unittest import mock

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from steady_queue_core.admin import JobAdmin, actions
from steady_queue_core.dialects import JobKey, contention
from steady_queue_core.listings import job_listing
from steady_queue_core.models import (
    BlockedExecution,
    FailedExecution,
    Job,
    Pause,
    Queue,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.tasks.metadata import JobMetadata

from .places import HOUR, Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor


def confirm(visitor: Visitor, page: Page, url: str, **query: Any) -> Page:
    """Answer the question of ``page`` with yes."""
    assert "?" in page
    return visitor.post(url, page.answer(), **query)


def log() -> list[tuple[int, str, str]]:
    """Return what was written down: flag, object and message."""
    entries = LogEntry.objects.order_by("pk")
    return [(each.action_flag, each.object_repr, each.change_message) for each in entries]


@on_every_database
def test_ticked_jobs_are_retried_discarded_and_run_now(using: str, scene: Scene) -> None:
    failed = scene.failed(3)
    scheduled = scene.ready(3, delay=HOUR)
    visitor = Visitor(*EVERYTHING)

    page = visitor.act("retry", failed[:2], state="failed")
    assert page.messages == ["Retried 2 jobs."]
    assert page.ids == failed[2:]
    page = visitor.act("run_now", scheduled[:1], state="scheduled")
    assert page.messages == ["Dispatched 1 job."]
    assert page.ids == scheduled[1:]
    assert scene.ids(ReadyExecution) == sorted([*failed[:2], scheduled[0]])
    question = visitor.act("discard", scheduled[1:], state="scheduled")
    assert "Discard 2 scheduled jobs? This cannot be undone." in question
    assert scene.ids(ScheduledExecution) == scheduled[1:]
    page = confirm(visitor, question, visitor.url("job"), state="scheduled")
    assert page.messages == ["Discarded 2 jobs."]

    assert scene.ids(Job) == sorted([*failed, scheduled[0]])
    assert log() == [
        *[(CHANGE, f"#{each}", "Retried") for each in failed[:2]],
        (CHANGE, f"#{scheduled[0]}", "Dispatched"),
        *[(DELETION, f"#{each}", "Discarded") for each in scheduled[1:]],
    ]
    assert {entry.user_id for entry in LogEntry.objects.all()} == {visitor.user.pk}


@on_every_database
def test_all_that_a_list_selects_is_done_in_batches_on_all_its_pages(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobAdmin, "list_per_page", 2)
    monkeypatch.setattr(job_listing, "LOOKED_AT", 5)
    monkeypatch.setattr(actions, "BATCH", 3)
    mail, others = scene.failed(7, queue_name="mail"), scene.failed(2)
    ready, kept = scene.ready(6, "mail"), scene.ready(4)
    blocked = scene.blocked(4)
    visitor = Visitor(*EVERYTHING)
    page = visitor.act("run_now", blocked[:1], state="blocked")
    assert page.messages == ["Dispatched 1 job."]
    Job.objects.using(using).get(pk=blocked[0]).discard()

    assert "of this list" in visitor.list(state="failed", queue="mail")
    question = visitor.act("retry", ..., state="failed", queue="mail")
    assert "Retry 7 failed jobs?" in question
    assert "undone" not in question
    page = confirm(visitor, question, visitor.url("job"), state="failed", queue="mail")
    assert page.messages == ["Retried 7 jobs."]
    assert scene.ids(FailedExecution) == others
    assert "Select all 13 jobs" in visitor.list(state="ready", queue="mail")
    question = visitor.act("discard", ..., state="ready", queue="mail")
    assert "Discard 13 ready jobs?" in question
    page = confirm(visitor, question, visitor.url("job"), state="ready", queue="mail")
    assert page.messages == ["Discarded 13 jobs."]
    page = visitor.act("discard", ..., state="failed", task="no.such.task")
    assert "Discard 0 failed jobs?" in page
    page = visitor.act("discard", ..., state="blocked", key="account:7")
    confirm(visitor, page, visitor.url("job"), state="blocked", key="account:7")

    assert scene.ids(ReadyExecution) == kept
    assert scene.ids(BlockedExecution) == []
    assert not {*mail, *ready, *blocked} & {*scene.ids(Job)}
    assert log()[1:8] == [(CHANGE, f"#{each}", "Retried") for each in mail]
    for entry in LogEntry.objects.all():
        assert entry.object_repr == f"#{entry.object_id}"


@on_every_database
def test_waiting_and_running_jobs_are_cancelled(using: str, scene: Scene) -> None:
    [claim], [ready], [scheduled] = scene.claimed(1), scene.ready(1), scene.ready(1, delay=HOUR)
    visitor = Visitor(*EVERYTHING)

    question = visitor.act("cancel", [claim.job_id], state="running")
    assert "Cancel 1 running jobs? Running tasks are interrupted." in question
    page = confirm(visitor, question, visitor.url("job"), state="running")
    assert page.messages == ["Cancelled 1 job."]
    assert Job.objects.using(using).get(pk=claim.job_id).is_cancelled
    page = visitor.see(visitor.url("job", "change", claim.job_id))
    assert "0 of 1" in page

    question = visitor.act("cancel", ..., state="ready")
    assert confirm(visitor, question, visitor.url("job"), state="ready").messages == [
        "Cancelled 1 job."
    ]
    question = visitor.post(visitor.url("job", "cancel", scheduled))
    page = confirm(visitor, question, visitor.url("job", "cancel", scheduled))
    assert page.messages == [f"Cancelled job #{scheduled}."]
    assert page.buttons == ["Retry", "Discard"]
    assert scene.ids(FailedExecution) == sorted([ready, scheduled])


@on_every_database
def test_one_job_is_acted_on_from_its_page(using: str, scene: Scene) -> None:
    [failed], [scheduled] = scene.failed(1), scene.ready(1, delay=HOUR)
    visitor = Visitor(*EVERYTHING)

    def press(button: str, job: int) -> Page:
        return visitor.post(visitor.url("job", button, job))

    assert visitor.see(visitor.url("job", "change", failed)).buttons == ["Retry", "Discard"]
    page = press("retry", failed)
    assert page.messages == [f"Retried job #{failed}."]
    assert page.buttons == ["Cancel", "Discard"]
    page = press("retry", failed)
    assert page.messages == [
        f"Job #{failed} has changed state in the meantime: it cannot be retried now."
    ]
    assert press("run", scheduled).messages == [f"Dispatched job #{scheduled}."]
    question = press("discard", scheduled)
    assert f"Discard job #{scheduled}?" in question
    assert visitor.see(question.link("No, take me back")).status == 200
    page = confirm(visitor, question, visitor.url("job", "discard", scheduled))
    assert page.messages == [f"Discarded job #{scheduled}."]
    page = confirm(visitor, question, visitor.url("job", "discard", scheduled))
    assert page.messages == [f"Job {scheduled} no longer exists."]

    assert scene.ids(Job) == [failed]
    assert [entry.object_id for entry in LogEntry.objects.order_by("pk")] == [
        str(failed), str(scheduled), str(scheduled),
    ]  # fmt: skip
    assert "Retried" in visitor.see(visitor.url("job", "history", failed))


@on_every_database
def test_jobs_that_moved_on_are_left_alone_and_told_of(using: str, scene: Scene) -> None:
    failed = scene.failed(2)
    visitor = Visitor(*EVERYTHING)
    question = visitor.act("discard", failed, state="failed")
    Job.objects.using(using).get(pk=failed[0]).retry()
    [claim] = scene.claim()
    page = confirm(visitor, question, visitor.url("job"), state="failed")
    assert page.messages == [
        "Discarded 1 job.",
        "1 had changed state in the meantime and were left alone.",
    ]
    assert scene.ids(Job) == [claim.job_id] == failed[:1]
    page = visitor.post(visitor.url("job", "discard", claim.job_id), {"confirmed": "yes"})
    assert page.messages == [
        f"Job #{claim.job_id} has changed state in the meantime: it cannot be discarded now."
    ]


@on_every_database
def test_a_job_whose_unique_key_another_one_has_is_not_retried(using: str, scene: Scene) -> None:
    key = JobMetadata(unique=JobKey("shop.tasks.pay/\x1b7").stored).text()
    [[failed], [other]] = scene.failed(1, metadata=key), scene.failed(1, metadata=key)
    [holder] = scene.ready(1, metadata=key)
    visitor = Visitor(*EVERYTHING)
    page = visitor.post(visitor.url("job", "retry", failed))
    [told] = page.messages
    assert told.startswith(f"Job #{holder} has the unique key of job #{failed}, shop.tasks.pay/")
    assert told.endswith(": it cannot be retried now.")
    assert "\x1b" not in told
    page = visitor.act("retry", [failed, other], state="failed")
    assert page.messages == [
        "Retried 0 jobs.",
        "2 had changed state in the meantime, or another job has their unique key, "
        "and were left alone.",
    ]
    assert visitor.post(visitor.url("job", "cancel", holder), {"confirmed": "yes"})
    assert scene.ids(FailedExecution) == [failed, other, holder]
    page = visitor.act("retry", [failed, other], state="failed")
    assert page.messages[0] == "Retried 1 job."
    assert scene.ids(ReadyExecution) == [failed]


@on_every_database
def test_queues_are_paused_resumed_and_cleared(using: str, scene: Scene) -> None:
    scene.ready(3, "mail"), scene.ready(1, "a/b?c"), scene.ready(2, "reports")
    scheduled = scene.ready(1, "mail", delay=HOUR)
    visitor = Visitor(*EVERYTHING)

    page = visitor.act("pause", ["mail", "a/b?c", "unused"], model="pause")
    assert page.messages == ["Paused: mail, a/b?c, unused."]
    assert sorted(scene.ids(Pause)) == ["a/b?c", "mail", "unused"]
    assert "mail paused 3" in page
    assert "reports open 2" in page
    page = visitor.act("pause", ["mail"], model="pause")
    assert page.messages == ["Paused no queues: there was nothing to change."]
    page = visitor.act("resume", ..., model="pause")
    assert page.messages == ["Resumed: a/b?c, mail, unused."]
    question = visitor.act("clear", ["mail"], model="pause")
    assert "Discard 3 ready jobs of mail?" in question
    page = confirm(visitor, question, visitor.url("pause"))
    assert page.messages == ["Discarded 3 ready jobs of mail."]
    assert scene.ids(ScheduledExecution) == scheduled

    page = visitor.see(visitor.url("pause", "change", "a_2Fb_3Fc"))
    assert page.buttons == ["Pause", "Clear"]
    page = visitor.post(visitor.url("pause", "pause", "a_2Fb_3Fc"))
    assert page.buttons == ["Resume", "Clear"]
    assert Queue("a/b?c", using).paused
    visitor.post(visitor.url("pause", "resume", "a_2Fb_3Fc"))
    question = visitor.post(visitor.url("pause", "clear", "a_2Fb_3Fc"))
    assert visitor.see(question.link("No, take me back")).status == 200
    confirm(visitor, question, visitor.url("pause", "clear", "a_2Fb_3Fc"))
    assert Queue("a/b?c", using).size == 0
    assert [each[1:] for each in log()] == [
        *[(each, "Paused") for each in ("mail", "a/b?c", "unused")],
        *[(each, "Resumed") for each in ("a/b?c", "mail", "unused")],
        ("mail", "Cleared of 3 ready jobs"),
        ("a/b?c", "Paused"),
        ("a/b?c", "Resumed"),
        ("a/b?c", "Cleared of 1 ready jobs"),
    ]


@on_every_database
def test_contention_is_told_and_other_errors_are_not_hidden(using: str, scene: Scene) -> None:
    failed = scene.failed(2)
    visitor = Visitor(*EVERYTHING)
    with (
        mock.patch.object(type(scene.dialect), "lock_rows", side_effect=OperationalError("away")),
        mock.patch.object(type(scene.dialect), "is_contention", return_value=True),
        mock.patch.object(contention, "PATIENCE", 0.05),
    ):
        page = visitor.act("retry", failed, state="failed")
        one = visitor.post(visitor.url("job", "retry", failed[0]))
    assert page.messages == [
        "Retried 0 jobs.",
        "There may be more: the database was busy. Repeat the action for the rest.",
    ]
    assert one.messages == [f"Retry job #{failed[0]}: the database was busy."]
    with (
        mock.patch.object(type(scene.dialect), "lock_rows", side_effect=OperationalError("away")),
        pytest.raises(OperationalError),
    ):
        visitor.act("retry", failed, state="failed")
    assert scene.ids(FailedExecution) == failed


@pytest.mark.django_db(transaction=True)
def test_selecting_all_loads_no_more_keys_than_a_batch_at_once(scene: Scene) -> None:
    scene.ready(3_000)
    visitor = Visitor(*EVERYTHING)
    question = visitor.act("discard", ..., state="ready")
    with CaptureQueriesContext(connections["default"]) as captured:
        confirm(visitor, question, visitor.url("job"), state="ready")
    assert scene.ids(Job) == []
    assert not [each for each in captured.captured_queries if each["sql"].count(",") > 6_000]


@pytest.mark.django_db
def test_what_users_do_is_logged(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    [failed] = scene.failed(1)
    visitor = Visitor(*EVERYTHING)
    with caplog.at_level(logging.INFO, "steady_queue.admin"):
        visitor.post(visitor.url("job", "retry", failed))
        query = {"state": "failed", "queue": "a\nb"}
        confirm(visitor, visitor.act("retry", ..., **query), visitor.url("job"), **query)
    assert caplog.messages == [
        f"{visitor.user.username}: Retried (#{failed})",
        f"{visitor.user.username}: Retried 0 jobs (all selected failed jobs, queue a b)",
    ]


@pytest.mark.django_db
def test_what_is_posted_without_sense_changes_nothing(scene: Scene) -> None:
    failed = scene.failed(2)
    visitor = Visitor(*EVERYTHING)
    for chosen in ([], ["x"], ["-1"], ["9" * 30], [""], ["1e3"]):
        page = visitor.act("retry", chosen, state="failed")
        assert page.status == 200
    for action in ("delete_selected", "none", "", "run_now"):
        assert visitor.act(action, failed, state="failed").status == 200
    page = visitor.act("retry", failed)  # where no state is chosen, nothing can be done
    assert page.actions == []
    for key in ("0", "9" * 30, "x", "%00"):
        visitor.post(visitor.url("job", "change", failed[0]).replace(f"/{failed[0]}/", f"/{key}/"))
        for verb in ("retry", "run", "cancel", "discard"):
            url = visitor.url("job", verb, failed[0]).replace(f"/{failed[0]}/", f"/{key}/")
            assert visitor.post(url, {"confirmed": "yes"}).status == 200
    for verb in ("pause", "resume", "clear"):
        url = visitor.url("pause", verb, "x" * 300)
        assert visitor.post(url, {"confirmed": "yes"}).messages
        url = visitor.url("pause", verb, "x").replace("/x/", "/%00/")
        assert visitor.post(url, {"confirmed": "yes"}).messages
    visitor.act("pause", ["a\0b", "x" * 256, ""], model="pause")
    assert scene.ids(FailedExecution) == failed
    assert not Pause.objects.exists()
    assert log() == []


@pytest.mark.django_db
def test_nothing_is_done_by_a_get_or_without_the_token(scene: Scene) -> None:
    [failed] = scene.failed(1)
    visitor = Visitor(*EVERYTHING)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(visitor.user)
    for verb in ("retry", "run", "cancel", "discard"):
        url = visitor.url("job", verb, failed)
        assert visitor.see(url).status == 405
        assert strict.post(url, {"confirmed": "yes"}).status_code == 403
    for verb in ("pause", "resume", "clear"):
        url = visitor.url("pause", verb, "mail")
        assert visitor.see(url).status == 405
        assert strict.post(url, {"confirmed": "yes"}).status_code == 403
    data = {"action": "retry", "index": "0", "_selected_action": [str(failed)]}
    assert strict.post(visitor.url("job") + "?state=failed", data).status_code == 403
    assert visitor.client.post(visitor.url("job", "change", failed)).status_code == 405
    assert scene.ids(FailedExecution) == [failed]
    assert User.objects.count() == 1
