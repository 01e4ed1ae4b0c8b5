"""Batches and workflows in the admin: the list, the page of each, the actions, and their jobs."""

from __future__ import annotations

import re
from typing import Any
from unittest import mock

import pytest
from django.contrib.admin.models import LogEntry
from django.db import OperationalError, connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from steady_queue_core import Batch, Workflow, call, chain, group
from steady_queue_core.admin import BatchAdmin, batch_list, batch_page, batches
from steady_queue_core.dialects import contention
from steady_queue_core.models import BatchMember, FailedExecution, Job, JobBatch, WaitingExecution

from ..app.tasks import add, noop
from ..core.driver import Driver
from .places import Scene, on_every_database
from .test_actions import confirm, log
from .test_lists import MOST_QUERIES
from .visitor import EVERYTHING, Page, Visitor


def running(count: int = 3, description: str = "import") -> Batch:
    with Batch(description, metadata={"shop": 7, "password": "hush"}, on_finish=noop) as batch:
        for number in range(count):
            add.enqueue(number, 1)
    return batch


def page_of(visitor: Visitor, batch_id: int, **query: Any) -> Page:
    return visitor.see(visitor.url("jobbatch", "change", batch_id), **query)


@on_every_database
def test_the_list_tells_how_far_batches_are(using: str, scene: Scene) -> None:
    first = running(3)
    Driver(using).work()
    chained = chain(call(add, 1, 2), call(noop), description="steps").enqueue()
    second = running(2, "other")
    second.cancel()
    visitor = Visitor("view_jobbatch")
    page = visitor.list("jobbatch")
    assert page.ids == [second.id, chained.id, first.id]
    assert f"#{second.id} other batch cancelled 2 of 2, 2 failed" in page
    assert f"#{chained.id} steps chain running 0 of 2" in page
    assert f"#{first.id} import batch succeeded 3 of 3" in page
    assert "3 batches" in page
    for query, found in (
        ({"status": "running"}, [chained.id]),
        ({"status": "succeeded"}, [first.id]),
        ({"status": "cancelled"}, [second.id]),
        ({"status": "failed"}, []),
        ({"status": "open"}, []),
        ({"kind": "batch"}, [second.id, first.id]),
        ({"kind": "batch", "status": "succeeded"}, [first.id]),
        ({"q": "mpor"}, [first.id]),
        ({"q": f"#{chained.id}"}, [chained.id]),
        ({"q": "%"}, []),
        ({"q": "9" * 18}, []),
    ):
        assert visitor.list("jobbatch", **query).ids == found, query


@on_every_database
def test_every_status_is_a_filter(using: str, scene: Scene) -> None:
    made = {each.value: running(1).id for each in batch_list.STATUSES}
    rows = JobBatch.objects.using(using)
    moment = rows.values_list("created_at", flat=True)[0]
    rows.filter(pk=made["open"]).update(started_at=None)
    over = {"finished_at": moment, "total": 1, "failed": 0}
    rows.filter(pk=made["succeeded"]).update(**over)
    rows.filter(pk=made["failed"]).update(**over | {"failed": 1})
    rows.filter(pk=made["cancelled"]).update(**over | {"cancelled_at": moment})
    visitor = Visitor("view_jobbatch")
    for status, batch_id in made.items():
        page = visitor.list("jobbatch", status=status)
        assert page.ids == [batch_id]
        assert f"batch {status} " in page


@on_every_database
def test_pages_follow_each_other_in_both_directions(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [running(1, "ours" if number % 2 else "theirs").id for number in range(7)][::-1]
    monkeypatch.setattr(BatchAdmin, "list_per_page", 2)
    visitor = Visitor("view_jobbatch")

    def walk(label: str, way: str, page: Page) -> list[list[int]]:
        pages = [page.ids]
        while f'rel="{way}"' in page.source:
            page = visitor.see(visitor.url("jobbatch") + page.link(label))
            pages.append(page.ids)
        return pages

    pages = walk("Next", "next", visitor.list("jobbatch"))
    assert pages == [made[:2], made[2:4], made[4:6], made[6:]]
    monkeypatch.setattr(batch_list, "LOOKED_AT", 3)
    page = visitor.list("jobbatch", q="ours")
    assert "each page examines a limited number" in page
    pages = walk("(?:Next|Look further)", "next", page)
    assert [each for ids in pages for each in ids] == made[1::2]


@on_every_database
def test_members_of_batches_that_go_on_are_counted_up_to_a_bound(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "COUNTED", 4)
    large, small = running(6), running(3)
    visitor = Visitor("view_jobbatch")
    with CaptureQueriesContext(connections[using]) as few:
        page = visitor.list("jobbatch")
    assert f"#{large.id} import batch running 0 of 4+" in page
    assert f"#{small.id} import batch running 0 of 3" in page
    assert "0 of 6" in page_of(visitor, large.id)
    for _ in range(20):
        running(2)
    with CaptureQueriesContext(connections[using]) as many:
        visitor.list("jobbatch")
    assert len(few) == len(many)
    told = " ".join(each["sql"] for each in many.captured_queries)
    assert not re.search(r"\bmetadata\b|\bcallbacks\b", told)


@on_every_database
def test_a_batch_has_a_page(using: str, scene: Scene) -> None:
    with Batch("all shops") as outer:
        batch = running(2)
        nested = group(call(add, 1, 2), call(noop)).enqueue()
        noop.enqueue()
    visitor = Visitor(*EVERYTHING)
    page = page_of(visitor, batch.id)
    assert f"Batch #{batch.id} " in page
    assert "Status running Kind batch Description import Progress 0 of 2 Part of batch" in page
    assert f"#{outer.id}</a>" in page.source
    assert "Metadata {'shop': 7, 'password': '****" in page
    assert "hush" not in page.source
    assert "Callbacks When Task Queue on_finish noop default" in page
    assert page.buttons == ["Cancel", "Retry"]
    first, second = BatchMember.objects.using(using).filter(batch_id=batch.id).order_by("pk")
    assert f"Member Name Task State #{first.job_id} add add pending #{second.job_id}" in page
    assert "Graph" not in page
    page = page_of(visitor, outer.id)
    assert "All 3 Pending 3" in page
    assert f"batch #{batch.id} import pending group #{nested.id} group #{nested.id} pending" in page
    for url in re.findall(r'href="([^"]+/change/[^"]*)"', page.source):
        assert visitor.see(url).status == 200
    assert "Metadata" not in page_of(Visitor("view_jobbatch"), batch.id)


@on_every_database
def test_members_are_paged_and_chosen_by_state(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_page, "SHOWN", 2)
    batch = running(5)
    running(1)
    members = BatchMember.objects.using(using)
    keys = list(members.filter(batch_id=batch.id).order_by("pk").values_list("job_id", flat=True))
    members.filter(job_id__in=keys[1:4]).update(state=1)
    visitor = Visitor("view_jobbatch", "view_job")
    url = visitor.url("jobbatch", "change", batch.id)

    def shown(page: Page) -> list[int]:
        return [int(each) for each in re.findall(r">#(\d+)</a></td>", page.source)]

    def walk(page: Page, label: str) -> tuple[list[list[int]], Page]:
        found = [shown(page)]
        while f">{label}</a>" in page.source:
            page = visitor.see(url + page.link(f"{label}<"))
            found.append(shown(page))
        return found, page

    pages, last = walk(page_of(visitor, batch.id), "Next")
    assert pages == [keys[:2], keys[2:4], keys[4:]]
    pages, _ = walk(last, "Previous")
    assert pages == [keys[4:], keys[2:4], keys[:2]]
    page = page_of(visitor, batch.id)
    assert "All 5 Pending 2 Succeeded 3" in page
    page = visitor.see(url + page.link("Succeeded"))
    pages, _ = walk(page, "Next")
    assert pages == [keys[1:3], keys[3:4]]
    for query in ({"p": "after[]"}, {"p": "x"}, {"members": "none"}, {"p": 'after["x"]'}):
        assert shown(page_of(visitor, batch.id, **query)) == keys[:2]
    assert shown(page_of(visitor, batch.id, p=f"after[{2**63 - 1}]")) == []


@on_every_database
def test_no_page_of_a_batch_makes_more_queries_than_others_or_few(using: str, scene: Scene) -> None:
    workflow = Workflow("large")
    start = workflow.add(call(noop))
    for number in range(120):
        after = workflow.add(call(noop), name=f"{number}", after=[start])
        workflow.add(group(chain(call(noop), call(noop)), call(noop)), after=[after])
    large = workflow.enqueue()
    with Batch("outer"):
        inner = chain(call(noop), call(noop)).enqueue()
    visitor = Visitor(*EVERYTHING)
    waiting = WaitingExecution.objects.using(using).order_by("pk")
    urls = [visitor.url("jobbatch", "change", each.id) for each in (large, inner)]
    urls += [f"{urls[0]}?members=pending", f"{urls[0]}?p=after[5]"]
    urls += [visitor.url("job", "change", row.pk) for row in (waiting[0], waiting[3])]
    urls += [f"{visitor.url('job')}?state=waiting", visitor.url("jobbatch")]
    for url in urls:
        with (
            CaptureQueriesContext(connections["default"]) as ours,
            CaptureQueriesContext(connections[using]) as theirs,
        ):
            assert visitor.see(url).status == 200
        made = ours.captured_queries + (theirs.captured_queries if using != "default" else [])
        # The first page of a batch with batches in it also reads what these begin with.
        most = MOST_QUERIES + (2 if url == urls[0] else 0)
        assert len(made) <= most, (url, [each["sql"] for each in made])


@on_every_database
def test_a_job_leads_to_its_batch_and_what_it_waits_for(using: str, scene: Scene) -> None:
    workflow = Workflow()
    first = workflow.add(call(noop), name="first")
    second = workflow.add(chain(call(noop), call(noop)), name="second")
    workflow.add(call(add, 1, 2), name="last", after=[first, second], run_when="finished")
    result = workflow.enqueue()
    [last] = BatchMember.objects.using(using).filter(name="last").values_list("job_id", flat=True)
    [one] = BatchMember.objects.using(using).filter(name="first").values_list("job_id", flat=True)
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.url("job", "change", last))
    assert "State Waiting" in page
    assert f"Member of #{result.id}" in page
    assert f"Waits for Member Name Task State Has to end by #{one} first noop pending" in page
    assert "second pending finished" in page
    assert page.buttons == ["Cancel", "Discard"]
    for url in re.findall(r'href="([^"]+/change/[^"]*)"', page.source):
        assert visitor.see(url).status == 200
    page = visitor.list(state="waiting")
    assert last in page.ids
    assert f"add default 0 #{result.id} 2 members" in page
    blind = Visitor("view_job")
    page = blind.see(blind.url("job", "change", last))
    assert f"Member of #{result.id}" in page
    assert "/jobbatch/" not in page.source
    assert "/jobbatch/" not in blind.list(state="waiting").source

    batch = running(1)
    while Driver(using).work():
        pass
    [callback] = (
        Job.objects.using(using)
        .filter(task_path=noop.module_path, metadata__contains="batch")
        .order_by("-pk")[:1]
    )
    page = visitor.see(visitor.url("job", "change", callback.pk))
    assert f"Callback of #{batch.id}" in page
    [plain] = scene.ready(1)
    assert "Batch" not in visitor.see(visitor.url("job", "change", plain)).text.split("Job #")[1]


@on_every_database
def test_waiting_jobs_are_cancelled_and_discarded(using: str, scene: Scene) -> None:
    results = [chain(call(noop), call(noop)).enqueue() for _ in range(2)]
    one, two = sorted(WaitingExecution.objects.using(using).values_list("pk", flat=True))
    visitor = Visitor(*EVERYTHING)
    question = visitor.act("cancel", [one], state="waiting")
    assert "Cancel 1 waiting jobs?" in question
    page = confirm(visitor, question, visitor.url("job"), state="waiting")
    assert page.messages == ["Cancelled 1 job."]
    page = visitor.act("discard", ..., state="waiting")
    page = confirm(visitor, page, visitor.url("job"), state="waiting")
    assert page.messages == ["Discarded 1 job."]
    assert scene.ids(WaitingExecution) == []
    assert scene.ids(FailedExecution) == [one]
    Driver(using).work()
    for each in results:
        each.refresh()
    assert [str(each.status) for each in results] == ["failed", "succeeded"]
    assert two not in scene.ids(Job)


@on_every_database
def test_batches_are_cancelled_and_retried(using: str, scene: Scene) -> None:
    first, second, over = running(2), running(3), running(1)
    over.cancel()
    visitor = Visitor(*EVERYTHING)
    question = visitor.act("cancel", [first.id, over.id], "jobbatch")
    assert "Cancel 2 batches? Waiting jobs fail, running tasks are interrupted" in question
    of_all = visitor.act("cancel", ..., "jobbatch")
    assert "What takes more than 20 seconds has to be repeated." in of_all
    assert "has to be repeated" not in question
    assert Batch.get(first.id).status == "running"
    page = confirm(visitor, question, visitor.url("jobbatch"))
    assert page.messages == ["Cancelled 1 batch.", "1 had ended and were left alone."]
    assert Batch.get(first.id).status == "cancelled"
    assert Batch.get(second.id).status == "running"

    url = visitor.url("jobbatch", "retry", first.id)
    question = visitor.post(url)
    assert f"Retry batch #{first.id}? Jobs that have failed or were cancelled run" in question
    page = confirm(visitor, question, url)
    assert page.messages == [f"Retried batch #{first.id}."]
    assert page.buttons == ["Cancel", "Retry"]
    page = visitor.post(url, {"confirmed": "yes"})
    assert page.messages == [f"Batch #{first.id} had nothing to be run again."]
    Driver(using).work()
    assert Batch.get(first.id).status == "succeeded"
    assert page_of(visitor, first.id).buttons == []
    page = visitor.post(visitor.url("jobbatch", "cancel", first.id), {"confirmed": "yes"})
    assert page.messages == [f"Batch #{first.id} had ended."]

    question = visitor.act("retry", ..., "jobbatch", status="cancelled")
    page = confirm(visitor, question, visitor.url("jobbatch"), status="cancelled")
    assert page.messages == ["Retried 1 batch."]
    assert [message for _, _, message in log()] == ["Cancelled", "Retried", "Retried"]
    assert LogEntry.objects.first() is not None
    assert "Cancelled" in visitor.see(visitor.url("jobbatch", "history", first.id))


@on_every_database
def test_contention_is_told_and_stops_an_action(using: str, scene: Scene) -> None:
    batch = running(1)
    visitor = Visitor(*EVERYTHING)
    with (
        mock.patch.object(type(scene.dialect), "lock_rows", side_effect=OperationalError("away")),
        mock.patch.object(type(scene.dialect), "is_contention", return_value=True),
        mock.patch.object(contention, "PATIENCE", 0.05),
    ):
        data = {"confirmed": "yes"}
        one = visitor.post(visitor.url("jobbatch", "cancel", batch.id), data)
        question = visitor.act("cancel", [batch.id], "jobbatch")
        page = confirm(visitor, question, visitor.url("jobbatch"))
    assert one.messages == [f"Cancel batch #{batch.id}: the database was busy."]
    assert page.messages[-1].startswith("There may be more: the database was busy.")
    assert Batch.get(batch.id).status == "running"
    assert log() == []


@pytest.mark.django_db
def test_what_makes_no_sense_changes_nothing(scene: Scene) -> None:
    batch = running(1)
    visitor = Visitor(*EVERYTHING)
    for chosen in ([], ["x"], ["-1"], ["9" * 30], [""]):
        page = visitor.act("cancel", chosen, "jobbatch")
        if chosen and "confirmed" in page.source:
            confirm(visitor, page, visitor.url("jobbatch"))
    for query in (
        {"status": "none"}, {"kind": "none"}, {"q": "a\0b"}, {"p": "after[null]"},
        {"p": f"after[{10**30}]"}, {"metadata__contains": "x"}, {"o": "1"}, {"status": "a\0b"},
    ):  # fmt: skip
        response = visitor.client.get(visitor.url("jobbatch"), query, follow=True)
        assert response.status_code in (200, 400), query
        assert b"Database error" not in response.content
    for verb in ("cancel", "retry"):
        assert visitor.see(visitor.url("jobbatch", verb, batch.id)).status == 405
        url = visitor.url("jobbatch", verb, batch.id).replace(f"/{batch.id}/", "/%00/")
        assert visitor.post(url, {"confirmed": "yes"}).status == 200
    assert Batch.get(batch.id).status == "running"
    assert log() == []


@on_every_database
def test_a_form_of_another_model_completes_the_id_of_a_batch_and_reads_no_others(
    using: str, scene: Scene
) -> None:
    batch = running(1, "find me")
    visitor = Visitor("view_jobbatch")
    field = {"app_label": "steady_queue", "model_name": "batchmember", "field_name": "batch"}
    for term in ("", "find me", "-1", "9" * 30, str(batch.id)):
        answer = visitor.client.get(reverse("admin:autocomplete"), {**field, "term": term})
        found = [each["id"] for each in answer.json()["results"]]
        assert found == ([str(batch.id)] if term == str(batch.id) else []), term
