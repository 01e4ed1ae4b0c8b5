"""Actions on long lists, which go on in the background as a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import OperationalError

from steady_queue_core.admin import JobAdmin, actions, background
from steady_queue_core.arguments import encode_call
from steady_queue_core.dialects import ClaimedJob, Ending, portable
from steady_queue_core.listings import selection
from steady_queue_core.models import FailedExecution, Job, Pause, Process, ReadyExecution
from steady_queue_core.models.job_queryset import JobQuerySet
from steady_queue_core.own_tasks import ACT_ON_LIST

from ..core.driver import Driver
from .conftest import Show
from .places import HOUR, Scene, on_every_database
from .test_actions import confirm
from .visitor import EVERYTHING, Page, Visitor

QUEUE = "background"
FAILURE = "steady_queue_core.admin.background.NoLongerPermitted"
pytestmark = pytest.mark.usefixtures("_small")


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have lists be long, and parts small; the jobs of actions have a queue of their own."""
    monkeypatch.setattr(JobAdmin, "background_queue", QUEUE)
    monkeypatch.setattr(actions, "BATCH", 2)
    monkeypatch.setattr(background, "MANY", 3)
    monkeypatch.setattr(background, "RETRY_PAUSE", 0.0)


class Background:
    """The worker of that queue."""

    def __init__(self, using: str) -> None:
        self.using, self.driver = using, Driver(using)

    def serve(self, *queues: str) -> None:
        rows = Process.objects.using(self.using).filter(pk=self.driver.process.id)
        rows.update(metadata=json.dumps({"queues": queues}))

    def claim(self) -> ClaimedJob:
        [claim] = self.driver.claim(QUEUE)
        return claim

    def attempt(self) -> tuple[Job, Ending]:
        """Make one attempt at the job; return the job and how the attempt has ended."""
        self.driver.dispatch()
        claim = self.claim()
        result = self.driver.run(claim)
        self.driver.settle(result)
        return Job.objects.using(self.using).get(pk=claim.job_id), result.outcome.ending


def in_background(visitor: Visitor, page: Page, **query: Any) -> Page:
    assert "Yes, in the background" in page
    return visitor.post(visitor.url("job"), page.answer() | {"background": ["yes"]}, **query)


def history(message: str) -> list[int]:
    entries = LogEntry.objects.filter(change_message=message).order_by("pk")
    return [int(each.object_id) for each in entries]


@on_every_database
def test_what_takes_longer_than_a_request_may_goes_on_as_a_job(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "TIME_LIMIT", 0.0)
    failed, worker, visitor = scene.failed(7), Background(using), Visitor(*EVERYTHING)
    worker.serve(QUEUE)

    question = visitor.act("retry", ..., state="failed")
    assert "What is not done after 0 seconds goes on in the background, as a job." in question
    page = confirm(visitor, question, visitor.url("job"), state="failed")
    [own] = Job.objects.using(using).filter(task_path=ACT_ON_LIST).values_list("pk", flat=True)
    assert page.messages[0] == "Retried 2 jobs."
    assert page.messages[1:] == [
        "This goes on in the background, as job "
        f'<a href="{visitor.url("job", "change", own)}">#{own}</a>.'
    ]
    assert scene.ids(FailedExecution) == failed[2:]
    assert visitor.see(visitor.url("job", "change", own)).status == 200

    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert scene.ids(FailedExecution) == []
    assert scene.ids(ReadyExecution) == failed
    assert str(job.progress) == "5 of 5 (100%): Retried 5 jobs"
    assert history("Retried") == failed
    assert {entry.user_id for entry in LogEntry.objects.all()} == {visitor.user.pk}
    assert "Retried 5 jobs" in visitor.see(visitor.url("job", "change", own))


@on_every_database
def test_a_long_list_may_be_left_to_the_background_as_a_whole(using: str, scene: Scene) -> None:
    failed, other = scene.failed(4, queue_name="mail"), scene.failed(4)
    worker, visitor = Background(using), Visitor(*EVERYTHING)
    query = {"state": "failed", "queue": "mail"}
    short = visitor.act("retry", ..., state="failed", task="none.such")
    assert "in the background" not in short
    question = visitor.act("discard", ..., **query)
    assert f'No live worker serves queue "{QUEUE}", or it is paused' in question
    page = in_background(visitor, question, **query)
    assert "No live worker" in page.messages[1]
    assert scene.ids(FailedExecution) == [*failed, *other]
    worker.serve("back*")
    assert "No live worker" not in visitor.act("discard", ..., **query)
    Pause.objects.using(using).create(queue_name=QUEUE, created_at=scene.present(using))
    assert "No live worker" in visitor.act("discard", ..., **query)
    Pause.objects.using(using).all().delete()

    # What comes into the list now was not there when the user looked at it.
    later = scene.ready(2, "mail")
    Job.objects.using(using).get(pk=failed[1]).retry()
    assert {each.job_id for each in scene.claim(100, "mail")} == {failed[1], *later}
    for job_id in (failed[1], *later):
        FailedExecution.objects.using(using).create(
            job_id=job_id, exception_class="a.B", message="", created_at=scene.present(using)
        )
    _, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert scene.ids(FailedExecution) == sorted([failed[1], *other, *later])
    assert history("Discarded") == [failed[0], *failed[2:]]


@on_every_database
def test_an_attempt_that_is_killed_is_gone_on_with(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, worker, visitor = scene.failed(6), Background(using), Visitor(*EVERYTHING)
    in_background(visitor, visitor.act("retry", ..., state="failed"), state="failed")
    retry, parts = JobQuerySet.retry_failed, list[int]()

    def stop_at_second(jobs: JobQuerySet) -> int:
        done = retry(jobs)
        parts.append(done)
        if len(parts) == 2:
            raise LookupError("the host is gone")
        return done

    monkeypatch.setattr(JobQuerySet, "retry_failed", stop_at_second)
    _, ending = worker.attempt()
    assert ending is Ending.RETRIED
    # The part that was broken off is as if it had not begun.
    assert scene.ids(FailedExecution) == failed[2:]
    assert history("Retried") == failed[:2]
    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert parts == [2, 2, 2, 2]
    assert scene.ids(FailedExecution) == []
    assert str(job.progress) == "6 of 6 (100%): Retried 6 jobs"


@on_every_database
def test_a_part_that_meets_a_lock_is_tried_again(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "PAUSE", 0.0)
    failed, worker, visitor = scene.failed(4), Background(using), Visitor(*EVERYTHING)
    in_background(visitor, visitor.act("retry", ..., state="failed"), state="failed")
    retry, tries = JobQuerySet.retry_failed, list[int]()

    def meet_a_lock(jobs: JobQuerySet) -> int:
        tries.append(retry(jobs))
        if len(tries) < 4:
            raise OperationalError("deadlock")
        return tries[-1]

    monkeypatch.setattr(JobQuerySet, "retry_failed", meet_a_lock)
    monkeypatch.setattr(type(scene.dialect), "is_contention", lambda *given: True)
    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert len(tries) == 5
    assert scene.ids(ReadyExecution) == failed
    assert str(job.progress) == "4 of 4 (100%): Retried 4 jobs"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lost", ["retry_job", "view_job", "active", "staff", "user"])
def test_a_user_who_may_no_longer_do_it_stops_it(scene: Scene, lost: str) -> None:
    failed, worker, visitor = scene.failed(4), Background("default"), Visitor(*EVERYTHING)
    in_background(visitor, visitor.act("retry", ..., state="failed"), state="failed")
    if lost == "user":
        visitor.user.delete()
    elif lost in ("active", "staff"):
        setattr(visitor.user, f"is_{lost}", False)
        visitor.user.save()
    else:
        visitor.user.user_permissions.remove(Permission.objects.get(codename=lost))
    job, ending = worker.attempt()
    assert ending is Ending.FAILED
    assert job.failedexecution.exception_class == FAILURE
    assert scene.ids(FailedExecution) == [*failed, job.pk]
    assert history("Retried") == []


@pytest.mark.django_db(transaction=True)
def test_a_permission_that_is_lost_on_the_way_stops_it_there(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, worker, visitor = scene.failed(6), Background("default"), Visitor(*EVERYTHING)
    in_background(visitor, visitor.act("retry", ..., state="failed"), state="failed")
    retry = JobQuerySet.retry_failed

    def retry_and_lose(jobs: JobQuerySet) -> int:
        visitor.user.user_permissions.clear()
        return retry(jobs)

    monkeypatch.setattr(JobQuerySet, "retry_failed", retry_and_lose)
    job, _ = worker.attempt()
    assert "Retried 2 jobs before." in job.failedexecution.message
    assert scene.ids(FailedExecution) == [*failed[2:], job.pk]


class OurJobs(JobAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(pk__gt=0)


class SomeRetried(JobAdmin):
    def has_retry_permission(self, request: Any, obj: Any = None) -> bool:
        return True


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", [OurJobs, SomeRetried])
def test_where_only_the_page_knows_what_a_user_may_do_the_user_repeats_it(
    scene: Scene, page: type[JobAdmin], show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    show({Job: page})
    monkeypatch.setattr(actions, "TIME_LIMIT", 0.0)
    failed, visitor = scene.failed(5), Visitor(*EVERYTHING, site="narrowed")
    question = visitor.act("retry", ..., state="failed")
    assert "background" not in question
    answer = question.answer() | {"background": ["yes"]}
    page_after = visitor.post(visitor.url("job"), answer, state="failed")
    assert page_after.messages == [
        "Retried 2 jobs.",
        "There may be more: the action took more than 0 seconds. Repeat the action for the rest.",
    ]
    assert scene.ids(FailedExecution) == failed[2:]


@on_every_database
def test_filters_with_hostile_values_are_kept_as_they_are(using: str, scene: Scene) -> None:
    name = "\x1b[2J'\"><script>{% x %}é\n日本"
    failed, other = scene.failed(4, queue_name=name), scene.failed(1)
    worker, visitor = Background(using), Visitor(*EVERYTHING)
    query = {"state": "failed", "queue": name, "q": "' OR 1=1 --"}
    page = visitor.act("retry", ..., **query)
    assert page.status == 200
    del query["q"]
    page = in_background(visitor, visitor.act("retry", ..., **query), **query)
    assert "<script>{%" not in page.source
    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert scene.ids(FailedExecution) == other
    assert scene.ids(ReadyExecution) == failed
    assert "<script>{%" not in visitor.see(visitor.url("job", "change", job.pk)).source


@pytest.mark.django_db(transaction=True)
def test_an_action_is_never_one_on_itself(scene: Scene) -> None:
    ready, worker, visitor = scene.ready(4), Background("default"), Visitor(*EVERYTHING)
    in_background(visitor, visitor.act("discard", ..., state="ready"), state="ready")
    later = scene.ready(1)
    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert scene.ids(Job) == [job.pk, *later]
    assert history("Discarded") == ready


@pytest.mark.parametrize("with_admin", [True, False])
def test_any_worker_whose_project_has_the_admin_knows_the_task(with_admin: bool) -> None:
    code = (
        "import django\n"
        "from django.conf import settings\n"
        "import tests.settings\n"
        f"if not {with_admin}:\n"
        "    settings.INSTALLED_APPS.remove('django.contrib.admin')\n"
        "django.setup()\n"
        "from steady_queue_core.tasks.registry import known_task, registered_tasks\n"
        f"print(getattr(known_task({ACT_ON_LIST!r}), 'module_path', None))\n"
        f"print({ACT_ON_LIST!r} in [each.module_path for each in registered_tasks()])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    )  # fmt: skip
    assert told.stdout.split() == [ACT_ON_LIST if with_admin else "None", "False"]


@on_every_database
def test_a_search_in_arguments_and_a_time_hold_in_the_background(using: str, scene: Scene) -> None:
    text = encode_call([], {"name": "Ada"})
    found = scene.failed(4, arguments=text)
    old, others = scene.failed(2, arguments=text), scene.failed(2)
    present = portable.storable(scene.dialect.current_time(scene.connection) - 2 * HOUR)
    FailedExecution.objects.using(using).filter(pk__in=old).update(created_at=present)
    worker, visitor = Background(using), Visitor(*EVERYTHING)
    query = {"state": "failed", "arguments": "ada", "since": "1h"}
    page = in_background(visitor, visitor.act("retry", ..., **query), **query)
    assert "This goes on in the background" in page.messages[0]
    _, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert scene.ids(ReadyExecution) == found
    assert scene.ids(FailedExecution) == sorted([*old, *others])


@pytest.mark.django_db(transaction=True)
def test_who_may_no_longer_see_arguments_no_longer_acts_by_them(scene: Scene) -> None:
    failed = scene.failed(4, arguments=encode_call([], {"name": "Ada"}))
    worker, visitor = Background("default"), Visitor(*EVERYTHING)
    query = {"state": "failed", "arguments": "ada"}
    in_background(visitor, visitor.act("retry", ..., **query), **query)
    visitor.user.user_permissions.remove(Permission.objects.get(codename="view_arguments"))
    job, ending = worker.attempt()
    assert ending is Ending.FAILED
    assert job.failedexecution.exception_class == FAILURE
    assert scene.ids(FailedExecution) == sorted([*failed, job.pk])


@pytest.mark.django_db(transaction=True)
def test_nobody_else_has_it_go_on_after_it_was_stopped(scene: Scene) -> None:
    failed, visitor = scene.failed(4), Visitor(*EVERYTHING)
    in_background(visitor, visitor.act("retry", ..., state="failed"), state="failed")
    [stopped] = Job.objects.filter(task_path=ACT_ON_LIST)
    assert stopped.cancel()
    page = visitor.act("retry", [stopped.pk], state="failed")
    assert "and were left alone" in " ".join(page.messages)
    assert scene.ids(FailedExecution) == sorted([*failed, stopped.pk])
