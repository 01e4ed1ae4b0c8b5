"""Jobs are moved, rescheduled and enqueued again, by forms on lists and on the page of a job."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from steady_queue_core.admin import JobAdmin, actions, background
from steady_queue_core.dialects import Ending, JobKey, portable
from steady_queue_core.listings import job_listing
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution
from steady_queue_core.tasks.metadata import JobMetadata

from .conftest import Show
from .places import HOUR, Scene, on_every_database
from .test_background import QUEUE, Background
from .visitor import EVERYTHING, Page, Visitor

ALSO = ("change_job", "enqueue_job")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobAdmin, "background_queue", QUEUE)
    monkeypatch.setattr(actions, "BATCH", 2)
    monkeypatch.setattr(background, "MANY", 3)


def visitor() -> Visitor:
    return Visitor(*EVERYTHING, *ALSO)


def fill(who: Visitor, page: Page, url: str = "", query: Any = (), **fields: str) -> Page:
    """Fill in the form of a page."""
    given = {f"act-{name}": value for name, value in fields.items()}
    return who.post(url or who.url("job"), page.answer() | given, **dict(query))


def history() -> set[str]:
    return set(LogEntry.objects.values_list("change_message", flat=True))


@on_every_database
def test_ticked_jobs_are_moved_where_the_form_says(using: str, scene: Scene) -> None:
    ready, who, query = scene.ready(3), visitor(), {"state": "ready"}
    page = who.act("move", ready[:2], **query)
    assert "Move 2 ready jobs?" in page
    page = fill(who, page, query=query)
    assert "Give a queue_name, a priority, or both." in page
    page = fill(who, page, query=query, queue_name="a\nb", priority="101")
    assert "less than or equal to 100" in page
    page = fill(who, page, query=query, queue_name=" a")
    assert "contains control or other invisible characters" in page
    assert history() == set()
    page = fill(who, page, query=query, queue_name="mail", priority="7")
    assert page.messages == ["Moved 2 jobs to queue mail, to priority 7."]
    moved = ReadyExecution.objects.using(using).filter(queue_name="mail", rank=-7)
    assert sorted(moved.values_list("pk", flat=True)) == ready[:2]
    assert history() == {"Moved to queue mail, to priority 7"}

    url = who.url("job", "move", ready[2])
    assert "Move" in who.see(who.url("job", "change", ready[2])).buttons
    page = fill(who, who.post(url), url, priority="-3")
    assert page.messages == [f"Moved job #{ready[2]} to priority -3."]
    assert Job.objects.using(using).get(pk=ready[2]).priority == -3
    scene.claim()
    page = fill(who, who.post(url), url, priority="-3")
    assert page.messages == [
        f"Job #{ready[2]} has changed state in the meantime: it cannot be moved now."
    ]


@on_every_database
def test_a_long_list_is_moved_in_the_background(using: str, scene: Scene) -> None:
    scheduled, worker, who = scene.ready(5, delay=HOUR), Background(using), visitor()
    query = {"state": "scheduled"}
    page = who.act("move", ..., **query)
    page = who.post(
        who.url("job"),
        page.answer() | {"act-queue_name": "mail", "background": "yes"},
        **query,
    )
    assert "This goes on in the background" in page.messages[0]
    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    rows = ScheduledExecution.objects.using(using).filter(queue_name="mail")
    assert sorted(rows.values_list("pk", flat=True)) == scheduled
    assert str(job.progress) == "5 of 5 (100%): Moved 5 jobs to queue mail"


@on_every_database
def test_jobs_whose_places_change_are_met_once(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_listing, "LOOKED_AT", 2)
    scene.ready(5, "mail"), scene.ready(1)
    who, query = visitor(), {"state": "ready", "queue": "mail"}
    page = fill(who, who.act("move", ..., **query), query=query, priority="-9")
    assert page.messages == ["Moved 5 jobs to priority -9."]
    assert LogEntry.objects.count() == 5
    scheduled = {"state": "scheduled"}
    scene.ready(5, delay=HOUR)
    page = fill(who, who.act("reschedule", ..., **scheduled), query=scheduled, delay="2:00:00")
    assert page.messages[0].startswith("Rescheduled 5 jobs to ")
    assert len(page.messages) == 1


@on_every_database
def test_jobs_are_put_off(using: str, scene: Scene) -> None:
    ready, who, query = scene.ready(2), visitor(), {"state": "ready"}
    page = who.act("reschedule", ready[:1], **query)
    for fields in ({}, {"time": "2026-01-01T10:00", "delay": "60"}):
        page = fill(who, page, query=query, **fields)
        assert "Give a time, or how long from now: one of the two." in page
    for delay in ("-5", "99999 00:00:00"):
        assert "Give from 0 seconds to" in fill(who, page, query=query, delay=delay)
    page = fill(who, page, query=query, time="2031-02-03T10:30")
    # In the time zone of the project.
    assert page.messages == ["Rescheduled 1 job to 2031-02-03 10:30:00 CST."]
    row = ScheduledExecution.objects.using(using).get(pk=ready[0])
    assert f"{portable.aware(row.due_at):%Y-%m-%d %H:%M}" == "2031-02-03 16:30"

    before, url = scene.present(using), who.url("job", "reschedule", ready[1])
    page = fill(who, who.post(url), url, delay="2:00:00")
    assert re.match(rf"Rescheduled job #{ready[1]} to .* C[SD]T\.", page.messages[0])
    row = ScheduledExecution.objects.using(using).get(pk=ready[1])
    late = portable.aware(row.due_at) - before - 2 * HOUR
    assert timedelta(0) <= late <= timedelta(minutes=1)


@on_every_database
def test_copies_are_made_of_any_job_but_once(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that is broken off has made none of the copies of its last part."""
    monkeypatch.setattr(background, "RETRY_PAUSE", 0.0)
    finished, worker, who = scene.finished(5), Background(using), visitor()
    query = {"state": "finished"}
    page = who.act("enqueue_again", ..., **query)
    assert "Enqueue again 5 finished jobs? Each becomes a new job" in page
    who.post(who.url("job"), page.answer() | {"background": "yes"}, **query)
    own = Job.objects.using(using).order_by("-pk")[0].pk
    store, stored = background.Run._do_once, list[int]()

    def break_off(run: Any, *given: Any) -> None:
        store(run, *given)
        stored.append(run.changed)
        if len(stored) == 2:
            raise LookupError("the host is gone")

    monkeypatch.setattr(background.Run, "_do_once", break_off)
    assert worker.attempt()[1] is Ending.RETRIED
    assert Job.objects.using(using).filter(pk__gt=own).count() == 2
    job, ending = worker.attempt()
    assert ending is Ending.FINISHED
    assert stored == [2, 4, 4, 5]
    assert Job.objects.using(using).filter(pk__gt=own).count() == len(finished)
    assert str(job.progress) == "5 of 5 (100%): Enqueued again 5 jobs"
    page = who.post(who.url("job", "copy", job.pk), {"confirmed": "yes"})
    assert "is none that can be repeated: it cannot be enqueued again now." in page.messages[0]


@pytest.mark.django_db(transaction=True)
def test_why_a_job_is_not_enqueued_again(scene: Scene) -> None:
    key = JobMetadata(unique=JobKey("tea").stored).text()
    [holder], who = scene.ready(1, metadata=key), visitor()
    page = who.post(who.url("job", "copy", holder), {"confirmed": "yes"})
    assert page.messages == [
        f"Job #{holder} has the unique key of job #{holder}, tea: it cannot be enqueued again now."
    ]


@pytest.mark.django_db
def test_only_queues_that_tasks_may_be_in_are_accepted(scene: Scene, settings: Any) -> None:
    [ready], who = scene.ready(1), visitor()
    settings.TASKS["default"]["QUEUES"] = ["default", "mail"]
    settings.TASKS = dict(settings.TASKS)
    url = who.url("job", "move", ready)
    page = fill(who, who.post(url), url, queue_name="<b>other")
    assert "TASKS allows these queues only: default, mail." in page
    assert "<b>other" not in page.source
    assert fill(who, page, url, queue_name="mail").messages == [
        f"Moved job #{ready} to queue mail."
    ]


class MineMoved(JobAdmin):
    def has_move_permission(self, request: Any, obj: Any = None) -> bool:
        return obj is None or obj.queue_name == "mine"


@pytest.mark.django_db
def test_permission_is_asked_of_each_row_and_the_token_is_needed(scene: Scene, show: Show) -> None:
    show({Job: MineMoved})
    [mine], [other] = scene.ready(1, "mine"), scene.ready(1)
    who, query = Visitor(*EVERYTHING, *ALSO, site="narrowed"), {"state": "ready"}
    for chosen in ([mine, other], ...):
        page = fill(who, who.act("move", chosen, **query), query=query, priority="5")
        assert page.messages[0] == "Moved 1 job to priority 5."
    assert Job.objects.get(pk=other).priority == 0
    url = who.url("job", "move", other)
    assert who.post(url, {"confirmed": "yes", "act-priority": "5"}).status == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(who.user)
    for verb in ("move", "reschedule", "copy"):
        url = who.url("job", verb, mine)
        assert who.see(url).status == 405
        assert strict.post(url, {"confirmed": "yes"}).status_code == 403
