"""The lists of jobs: by state, in the order of an index, a page at a time."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from steady_queue_core.admin import JobAdmin
from steady_queue_core.dialects import portable
from steady_queue_core.listings import counts, job_listing
from steady_queue_core.listings.wording import moment
from steady_queue_core.models import (
    FailedExecution,
    Job,
    Rate,
    ReadyExecution,
    RecurringExecution,
    RecurringTask,
    ScheduledExecution,
    Semaphore,
    Share,
)

from .places import HOUR, Scene, on_every_database
from .visitor import EVERYTHING, Visitor

#: Queries that a page may make, whatever there is.
MOST_QUERIES = 12
STATES = ("", "ready", "scheduled", "blocked", "waiting", "running", "failed", "finished")


def fill(scene: Scene) -> dict[str, list[int]]:
    """Have jobs in every state; return them in the order of their lists."""
    failed, finished = scene.failed(3, queue_name="mail"), scene.finished(2)
    running = [claim.job_id for claim in scene.claimed(2, queue_name="mail")]
    late, urgent = scene.ready(2), scene.ready(2, rank=-5)
    soon, later = scene.ready(2, delay=HOUR), scene.ready(1, delay=2 * HOUR)
    found = {
        "ready": [*urgent, *late],
        "scheduled": [*soon, *later],
        "blocked": scene.blocked(2),
        "waiting": scene.waiting(2),
        "running": running,
        "failed": failed[::-1],
        "finished": finished[::-1],
    }
    return {"": sorted((each for ids in found.values() for each in ids), reverse=True), **found}


def recurring_tasks(scene: Scene, count: int) -> list[str]:
    """Have recurring tasks that have run; return their keys."""
    present = portable.storable(scene.dialect.current_time(scene.connection))
    tasks = [
        RecurringTask(
            key=f"task{number}", task_path="a.b", schedule="@hourly", timezone="UTC",
            arguments="", backend_name="default", queue_name="default",
            created_at=present, updated_at=present,
        )
        for number in range(count)
    ]  # fmt: skip
    RecurringTask.objects.using(scene.using).bulk_create(tasks)
    runs = [
        RecurringExecution(task_key=each.key, run_at=present, created_at=present) for each in tasks
    ]
    RecurringExecution.objects.using(scene.using).bulk_create(runs)
    return [each.key for each in tasks]


def walk(visitor: Visitor, label: str = "Next", **query: Any) -> list[list[int]]:
    """Return the ids of each page, from the first one on."""
    page = visitor.list(**query)
    pages = [page.ids]
    while f'rel="{"prev" if label == "Previous" else "next"}"' in page.source:
        page = visitor.see(visitor.url("job") + page.link(label))
        pages.append(page.ids)
    return pages


@on_every_database
def test_each_state_lists_its_jobs_in_its_order(using: str, scene: Scene) -> None:
    expected = fill(scene)
    visitor = Visitor("view_job")
    found = {state: visitor.list(state=state).ids for state in STATES}
    assert found == expected
    assert (
        "All 18 Ready 4 Scheduled 3 Blocked 2 Waiting 2 Running 2 Failed 3 Finished 2"
        in visitor.list()
    )


@on_every_database
def test_pages_follow_each_other_without_gap_in_both_directions(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobAdmin, "list_per_page", 2)
    fill(scene)
    # Many rows are equal in all columns of the order but the last.
    scene.ready(3, rank=2), scene.ready(3, delay=HOUR), scene.blocked(3), scene.waiting(3)
    present = portable.storable(scene.dialect.current_time(scene.connection))
    ReadyExecution.objects.using(using).update(queue_name="one")
    ScheduledExecution.objects.using(using).update(due_at=present)
    FailedExecution.objects.using(using).update(created_at=present)
    visitor = Visitor("view_job")
    for query in ({"state": state} for state in STATES):
        monkeypatch.setattr(JobAdmin, "list_per_page", 50)
        expected = visitor.list(**query).ids
        monkeypatch.setattr(JobAdmin, "list_per_page", 2)
        pages = walk(visitor, **query)
        assert [each for page in pages for each in page] == expected
        assert {len(page) for page in pages[:-1]} <= {2}
    page = visitor.list(state="ready", queue="one")
    seen = [page.ids]
    while 'rel="next"' in page.source:
        page = visitor.see(visitor.url("job") + page.link("Next"))
        seen.append(page.ids)
    for ids in reversed(seen[:-1]):
        page = visitor.see(visitor.url("job") + page.link("Previous"))
        assert page.ids == ids
    assert 'rel="prev"' not in page.source
    assert 'rel="next"' in page.source


@on_every_database
def test_jobs_are_found_by_queue_task_key_and_id(using: str, scene: Scene) -> None:
    [cleaning] = scene.failed(1, task_path="shop.tasks.clean")
    expected = fill(scene)
    [mail] = scene.ready(1, "mail")
    other = scene.blocked(1, key="account:8")
    visitor = Visitor("view_job")
    assert visitor.list(state="ready", queue="mail").ids == [mail]
    assert visitor.list(state="failed", queue="mail").ids == expected["failed"]
    assert visitor.list(state="failed", task="shop.tasks.clean").ids == [cleaning]
    for name in ("shop.tasks.clean", "clean", "tasks.clean", "s.CLE"):  # The list shows the name.
        assert visitor.list(q=name).ids == [cleaning]
    assert visitor.list(q="cle_n").ids == visitor.list(q="%").ids == []
    assert visitor.list(q=f"#{mail}").ids == visitor.list(q=mail).ids == [mail]
    assert visitor.list(state="blocked", key="account:8").ids == other
    assert visitor.list(state="failed", q=mail).ids == []
    assert visitor.list(q="9" * 19).ids == visitor.list(q="9" * 40).ids == []
    assert visitor.list(state="finished", q=expected["finished"][0]).ids == [
        expected["finished"][0]
    ]


@on_every_database
def test_filters_without_an_index_look_at_a_bounded_number_of_jobs(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_listing, "LOOKED_AT", 4)
    first = scene.ready(2, task_path="rare.task")
    scene.ready(9)
    second = scene.ready(1, task_path="rare.task")
    visitor = Visitor("view_job")
    page = visitor.list(state="ready", task="rare.task")
    assert page.ids == first
    assert "2+ jobs" in page
    pages = [page.ids]
    while "Look further" in page.source:
        page = visitor.see(visitor.url("job") + page.link("Look further"))
        pages.append(page.ids)
    assert pages == [first, [], second, []]


@on_every_database
def test_counts_are_exact_up_to_a_bound(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "CAP", 3)
    scene.ready(3), scene.ready(4, delay=HOUR)
    page = Visitor("view_job").list(state="scheduled")
    assert "All 3+ Ready 3 Scheduled 3+ Blocked 0" in page
    assert "3+ jobs" in page
    assert len(page.ids) == 4


@on_every_database
@pytest.mark.parametrize("rows", [0, 1])
def test_no_page_makes_more_than_a_dozen_queries(using: str, scene: Scene, rows: int) -> None:
    if rows:
        for _ in range(30):
            fill(scene)
        for number in range(60):
            scene.ready(2, f"queue-{number}")
        recurring = recurring_tasks(scene, 60)
        semaphores = [Semaphore(key=f"k{number}", value=0, limit=1) for number in range(60)]
        Semaphore.objects.using(using).bulk_create(semaphores)
        weights = [Share(queue_name="mail", key=f"k{n}", weight=2) for n in range(60)]
        Share.objects.using(using).bulk_create(weights)
        Rate.objects.using(using).bulk_create(
            Rate(key=f"k{number}", gate=1, line=1, shift=0, limit=1, period=10**6, burst=0)
            for number in range(60)
        )
        if using == "default":
            scene.ready(20_000), scene.ready(1_000, delay=HOUR)
    visitor = Visitor(*EVERYTHING)
    lists = ("pause", "process", "rate", "recurringtask", "semaphore", "overview")
    urls = [visitor.url(model) for model in lists]
    urls += [visitor.url("share"), f"{visitor.url('share')}?q=mail"]
    urls += [visitor.url("jobbatch"), f"{visitor.url('jobbatch')}?status=running&kind=batch&q=x"]
    urls += [f"{visitor.url('job')}?state={state}" for state in STATES]
    urls += [f"{visitor.url('job')}?state={state}&task=no.such" for state in STATES]
    urls += [visitor.url("job", "change", row.pk) for row in Job.objects.using(using)[:3]]
    urls += [visitor.url("pause", "change", "default")]
    urls += [visitor.url("process", "change", scene.worker.id)]
    if rows:
        urls += [visitor.url("recurringtask", "change", recurring[0])]
        urls += [visitor.url(model, "change", "k1") for model in ("rate", "semaphore")]
        share = Share.objects.using(using).latest("pk").pk
        urls += [visitor.url("share", page, share) for page in ("change", "delete")]
    for state in ("", "ready", "scheduled", "failed", "finished"):
        page = visitor.list(state=state)
        if 'rel="next"' in page.source:
            urls.append(visitor.url("job") + page.link("Next") + "&task=conformance.tasks.work")
    for url in urls:
        made = []
        with (
            CaptureQueriesContext(connections["default"]) as ours,
            CaptureQueriesContext(connections[using]) as theirs,
        ):
            assert visitor.see(url).status == 200
        made = ours.captured_queries + (theirs.captured_queries if using != "default" else [])
        assert len(made) <= MOST_QUERIES, (url, [each["sql"] for each in made])


@on_every_database
def test_lists_read_nothing_that_may_be_large(using: str, scene: Scene) -> None:
    fill(scene)
    visitor = Visitor(*EVERYTHING)
    with CaptureQueriesContext(connections[using]) as captured:
        for state in STATES:
            visitor.list(state=state)
    told = [query["sql"] for query in captured.captured_queries if "steady_queue_" in query["sql"]]
    assert told
    for column in ("arguments", "errors", "return_value", "worker_ids"):
        assert not [sql for sql in told if column in sql.replace("view_arguments", "")], column


@on_every_database
def test_instants_are_those_of_the_database(using: str, scene: Scene) -> None:
    scene.ready(1), scene.ready(1, delay=timedelta(days=2)), scene.claimed(1, queue_name="x")
    visitor = Visitor("view_job", "view_process", "view_queue")
    assert "1 d 23 h" in visitor.list(state="scheduled")
    ScheduledExecution.objects.using(using).update(
        due_at=portable.storable(scene.dialect.current_time(scene.connection) - 2 * HOUR)
    )
    assert "late by 2 h" in visitor.list(state="scheduled")
    assert re.search(r" \d+ m?s ", visitor.list(state="running").text)
    [failed], [finished] = scene.failed(1), scene.finished(1)
    before = portable.storable(scene.dialect.current_time(scene.connection) - 26 * HOUR)
    FailedExecution.objects.using(using).filter(pk=failed).update(created_at=before)
    Job.objects.using(using).filter(pk=finished).update(enqueued_at=before, finished_at=before)
    title = f'<span title="{moment(before)}">1 d 2 h ago</span>'
    for state in ("", "failed", "finished"):
        assert visitor.list(state=state).source.count(title) == 1
    Job.objects.using(using).filter(pk=finished).update(finished_at=before + 30 * HOUR)
    assert re.search(r">in 3 h 59 min<", visitor.list(state="finished").source)
    assert re.search(r"\d m?s ago", visitor.list("process").text)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        {"state": "none"},
        {"p": "after[1, 2]"},
        {"p": "before"},
        {"p": "after[null]"},
        {"p": "after[true]"},
        {"p": 'after["x"]'},
        {"p": f"after[{10**30}]"},
        {"p": "after" + "[" * 10_000},
        {"state": "scheduled", "p": 'after["yesterday", 1, 1]'},
        {"state": "scheduled", "p": 'after["2026-01-01T00:00:00", 1, 1]'},
        {"state": "scheduled", "p": 'after["2026-01-01T00:00:00+00:00", 99999999999, 1]'},
        {"q": "a\0b"},
        {"queue": "a\0b"},
        {"task": "\ud800".encode("utf-8", "surrogatepass")},
        {"arguments__contains": "secret"},
        {"readyexecution__queue_name": "x"},
        {"all": ""},
        {"o": "1"},
        {"e": "1"},
        {"database": "nowhere"},
        {"_facets": "True"},
        {"_popup": "1"},
    ],
)
def test_an_address_that_makes_no_sense_leads_to_a_list(query: dict[str, Any]) -> None:
    visitor = Visitor("view_job")
    response = visitor.client.get(visitor.url("job"), query, follow=True)
    assert response.status_code in (200, 400)
    assert b"Database error" not in response.content


@on_every_database
def test_a_form_of_another_model_completes_the_id_of_a_job_and_reads_no_others(
    using: str, scene: Scene
) -> None:
    """Anybody who may see jobs can call Django's address for it, with any text."""
    [job_id, *_] = scene.ready(3, task_path="shop.tasks.find_me")
    visitor = Visitor("view_job")
    field = {"app_label": "steady_queue", "model_name": "readyexecution", "field_name": "job"}
    address = reverse("admin:autocomplete")
    with CaptureQueriesContext(connections[using]) as captured:
        for term in ("", "find_me", "shop.tasks.find_me", "-1", "9" * 30, str(job_id)):
            answer = visitor.client.get(address, {**field, "term": term})
            found = [each["id"] for each in answer.json()["results"]]
            assert found == ([str(job_id)] if term == str(job_id) else []), term
    of_jobs = [each["sql"] for each in captured if "steady_queue_jobs" in each["sql"]]
    assert of_jobs
    assert not [sql for sql in of_jobs if f" = {job_id}" not in sql]
