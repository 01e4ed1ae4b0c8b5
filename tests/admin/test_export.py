"""Lists of jobs are exported, and what users do is listed."""

from __future__ import annotations

import csv
import io
import json
import logging
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext

from steady_queue_core.admin import (
    JobAdmin,
    ProcessAdmin,
    QueuesAdmin,
    RecurringTaskAdmin,
    export,
    recent_acts,
)
from steady_queue_core.arguments import encode_call
from steady_queue_core.listings import job_rows
from steady_queue_core.models import Job, Pause, Process, RecurringTask

from .conftest import Show
from .places import HOUR, Scene, on_every_database
from .test_actions import confirm
from .visitor import EVERYTHING, Visitor

HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", 'a,b"c', "plain"]


def exported(visitor: Visitor, **query: Any) -> str:
    response = visitor.client.get(visitor.url("job", "export"), query)
    assert response.status_code == 200
    assert response.streaming
    return b"".join(response).decode()


def as_csv(visitor: Visitor, **query: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(visitor, form="csv", **query))))


def as_json(visitor: Visitor, **query: Any) -> list[dict[str, Any]]:
    return [json.loads(each) for each in exported(visitor, form="jsonl", **query).splitlines()]


@on_every_database
def test_a_list_is_exported_with_its_filters(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PART", 2)
    failed, _ = scene.failed(5, queue_name="mail"), scene.failed(1)
    finished, scheduled = scene.finished(2), scene.ready(1, delay=HOUR)
    running = [claim.job_id for claim in scene.claimed(1)]
    blocked, ready = scene.blocked(1), scene.ready(1, rank=-7)
    visitor = Visitor("view_job")

    rows = as_csv(visitor, state="failed", queue="mail")
    assert [int(row["id"]) for row in rows] == failed
    assert {row["error"] for row in rows} == {"builtins.ValueError"}
    assert {(row["state"], row["queue"], row["message"]) for row in rows} == {
        ("failed", "mail", "told")
    }
    for state, ids in {
        "finished": finished, "scheduled": scheduled, "running": running, "blocked": blocked,
        "ready": ready,
    }.items():  # fmt: skip
        found = as_json(visitor, state=state)
        assert [row["id"] for row in found] == ids, state
        assert {row["state"] for row in found} == {state}
    assert as_json(visitor, state="ready")[0]["priority"] == 7
    assert as_json(visitor, state="blocked")[0]["concurrency_key"] == "account:7"
    assert as_json(visitor, state="scheduled")[0]["due_at"].endswith("+00:00")
    states = {row["id"]: row["state"] for row in as_json(visitor)}
    assert len(states) == Job.objects.using(using).count()
    assert states[failed[0]] == "failed"
    assert states[running[0]] == "running"
    assert as_json(visitor, state="failed", until="1h") == []
    assert len(as_json(visitor, state="failed", since="1h")) == 6
    link = visitor.list(state="failed", until="1h").link("Export as CSV")
    assert len(b"".join(visitor.client.get(link)).splitlines()) == 1
    page = visitor.list(state="failed", queue="mail")
    link = page.link("Export as CSV")
    assert len(b"".join(visitor.client.get(link)).splitlines()) == 6


@pytest.mark.django_db
def test_no_cell_is_a_formula_and_no_text_does_harm(scene: Scene) -> None:
    for name in [*HOSTILE, "\x1b[2Jx"]:
        scene.ready(1, name)
    visitor = Visitor("view_job")
    assert [row["queue"] for row in as_csv(visitor, state="ready")] == [
        "'=1+1", "'+1", "'-1", "'@SUM(A1)", 'a,b"c', "plain", "\\x1b[2Jx",
    ]  # fmt: skip
    scene.ready(1, "cold", rank=5)
    [cold] = as_csv(visitor, state="ready", queue="cold")
    assert cold["priority"] == "-5"  # A number is no formula.
    assert [row["queue"] for row in as_json(visitor, state="ready")[:6]] == HOSTILE


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("x;=1+1;y", "x;'=1+1;y"), ("x\n=1+1", "x\n'=1+1"), ("a, -b", "a,' -b"),
        ('x;"=1', 'x;\'"=1'), ("\tx", "'\tx"), ("a-b = c", "a-b = c"), (-5, -5), (None, None),
    ],
)  # fmt: skip
def test_no_part_of_a_cell_becomes_a_formula_where_lines_are_split_otherwise(
    value: Any, cell: Any
) -> None:
    assert export._cell(value) == cell


@pytest.mark.django_db
def test_arguments_need_their_permission_and_hide_secrets(scene: Scene) -> None:
    text = encode_call(["Ada", "hunter2"], {"more": "=1"})
    scene.ready(1, task_path="tests.app.tasks.sign_up", arguments=text)
    scene.ready(1, arguments="[")
    query = {"state": "ready", "with_arguments": "yes"}
    assert "arguments" not in as_json(Visitor("view_job"), **query)[0]
    seen, damaged = as_json(Visitor("view_job", "view_arguments"), **query)
    assert "'Ada'" in seen["arguments"]
    assert "hunter2" not in str(seen)
    assert "cannot be decoded" in damaged["arguments"]
    link = Visitor("view_job", "view_arguments").list(state="ready", arguments="Ada")
    address = link.link("Export as JSON lines with arguments")
    assert "with_arguments=yes" in address
    assert "arguments=Ada" in address
    assert visitor_without(address).status_code == 403


def visitor_without(address: str) -> Any:
    """Return the answer to a user who may not see arguments."""
    return Visitor("view_job").client.get(address)


@pytest.mark.django_db
def test_an_export_has_an_end_and_says_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PART", 2)
    scene.ready(5)
    visitor = Visitor("view_job")
    assert len(as_json(visitor, state="ready")) == 5
    monkeypatch.setattr(export, "MOST", 3)
    assert as_json(visitor, state="ready")[3:] == [{"cut": "Cut after 3 jobs."}]
    assert as_csv(visitor, state="ready")[-1]["id"] == "Cut after 3 jobs."
    monkeypatch.setattr(export, "TIME_LIMIT", -1.0)
    assert as_json(visitor, state="ready")[2:] == [{"cut": "Cut after -1 seconds and 2 jobs."}]


@pytest.mark.django_db(transaction=True)
def test_what_is_read_at_once_is_bounded(scene: Scene) -> None:
    scene.ready(1_200)
    visitor = Visitor("view_job")
    with CaptureQueriesContext(connections["default"]) as captured:
        assert len(as_json(visitor, state="ready")) == 1_200
    assert len(captured) < 20
    assert not [each for each in captured.captured_queries if each["sql"].count(",") > 6_000]


class Mine(JobAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(queue_name="mine")

    def has_view_arguments_permission(self, request: Any, obj: Any = None) -> bool:
        return obj is None or obj.pk % 2 == 0


@pytest.mark.django_db
def test_only_what_a_user_may_see_is_exported(scene: Scene, show: Show) -> None:
    show({Job: Mine})
    scene.ready(1)
    mine = scene.ready(2, "mine", arguments=encode_call([], {"more": 1}))
    visitor = Visitor(*EVERYTHING, site="narrowed")
    rows = as_json(visitor, state="ready", with_arguments="yes")
    assert [(row["id"], row["arguments"]) for row in rows] == [
        (pk, "more=1" if pk % 2 == 0 else "") for pk in mine
    ]
    nobody = Visitor("view_queue")
    for name in ("export", "acts"):
        assert nobody.see(nobody.url("job", name)).status == 403


@pytest.mark.django_db(transaction=True)
def test_an_asynchronous_server_sends_an_export_while_it_is_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(export, "PART", 2), monkeypatch.setattr(export, "LINES", 2)
    ids = scene.ready(5)
    visitor, read = Visitor("view_job"), list[int]()
    read_jobs = job_rows.read_jobs

    def counted(visible: Any, state: Any, ids: Any) -> Any:
        read.extend(ids)
        return read_jobs(visible, state, ids)

    monkeypatch.setattr(export, "read_jobs", counted)

    async def download() -> tuple[str, list[int]]:
        client = AsyncClient()
        await client.aforce_login(visitor.user)
        response: Any = await client.get(visitor.url("job", "export"), {"form": "csv"})
        assert response.is_async
        parts = aiter(response.streaming_content)
        first = await anext(parts)
        so_far = [*read]
        return "".join([first.decode(), *[part.decode() async for part in parts]]), so_far

    text, so_far = async_to_sync(download)()
    assert [int(row["id"]) for row in csv.DictReader(io.StringIO(text))] == ids
    assert len(so_far) == 2
    assert len(read) == 5
    assert not [each for each in recwarn if "StreamingHttpResponse" in str(each.message)]


@pytest.mark.django_db(transaction=True)
def test_an_export_that_nobody_reads_to_its_end_is_ended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = []

    def lines() -> Any:
        try:
            yield from map(str, range(10))
        finally:
            ended.append(True)

    async def begin() -> str:
        parts = export.in_turns(lines())
        try:
            return await anext(parts)
        finally:
            await parts.aclose()

    monkeypatch.setattr(export, "LINES", 3)
    assert async_to_sync(begin)() == "012"
    assert ended == [True]


@pytest.mark.django_db
def test_requests_without_sense_export_nothing(scene: Scene) -> None:
    visitor = Visitor("view_job")
    url = visitor.url("job", "export")
    for query in ({}, {"form": "xml"}, {"form": "csv", "queue": "\0"}, {"form": "csv", "q": "\0"}):
        assert visitor.client.get(url, query).status_code == 404
    assert visitor.client.post(url, {"form": "csv"}).status_code in (403, 405)
    assert exported(visitor, form="csv", state="no such").startswith("id,task")
    assert visitor.client.post(visitor.url("job", "acts")).status_code == 405


@on_every_database
def test_what_users_do_is_recorded_and_listed(
    using: str, scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, visitor = scene.failed(3), Visitor(*EVERYTHING)
    with caplog.at_level(logging.INFO, "steady_queue.admin"):
        exported(visitor, form="csv", state="failed", queue="<b>")
    assert caplog.messages == [
        f"{visitor.user.username}: Exported 0 jobs (all selected failed jobs, queue <b>)"
    ]
    question = visitor.act("retry", ..., state="failed")
    confirm(visitor, question, visitor.url("job"), state="failed")
    visitor.act("pause", ["mail"], model="pause")

    page = visitor.see(visitor.list(state="failed").link("Recent actions"))
    assert page.status == 200
    rows = page.text.partition("Such as")[2]
    parts = [rows.index(each) for each in ("Paused", "Retried", "Exported as csv")]
    assert parts == sorted(parts)
    assert f"Retried job 3 #{failed[-1]}" in rows
    assert "queue <b>" in rows
    assert "<b>" not in page.source

    monkeypatch.setattr(recent_acts, "MOST_ACTS", 1)
    page = visitor.see(visitor.url("job", "acts"))
    assert "The latest 1." in page
    assert "Retried" not in page
    # Who may not see queues is not shown what was done to them.
    assert "Paused" not in Visitor("view_job").see(visitor.url("job", "acts"))


@pytest.mark.django_db
def test_who_sees_some_jobs_only_is_shown_own_actions(scene: Scene, show: Show) -> None:
    show({Job: Mine})
    [failed] = scene.failed(1, queue_name="mine")
    one, other = (Visitor(*EVERYTHING, site="narrowed") for _ in range(2))
    one.post(one.url("job", "retry", failed))
    assert LogEntry.objects.count() == 1
    assert "Retried" in one.see(one.url("job", "acts"))
    assert "Retried" not in other.see(other.url("job", "acts"))


class OurSchedules(RecurringTaskAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(key="ours")


class OurQueues(QueuesAdmin):
    def get_queue_names(self, request: Any, names: Any) -> list[str]:
        return [each for each in names if each == "ours"]


class OurProcesses(ProcessAdmin):
    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        is_ours = obj is None or obj.hostname == "ours"
        return is_ours and super().has_view_permission(request, obj)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "page"),
    [(RecurringTask, OurSchedules), (Pause, OurQueues), (Process, OurProcesses)],
)
def test_a_page_that_shows_some_rows_only_leaves_others_actions_out(
    model: Any, page: Any, scene: Scene, show: Show
) -> None:
    [one], [two] = scene.failed(1), scene.failed(1)
    show({model: page})
    mine, theirs = (Visitor(*EVERYTHING, site="narrowed") for _ in range(2))
    mine.post(mine.url("job", "retry", one))
    theirs.post(theirs.url("job", "retry", two))
    seen = mine.see(mine.url("job", "acts"))
    assert f"#{one}" in seen
    assert f"#{two}" not in seen
    # Who may not see that page at all is not concerned.
    other = Visitor("view_job", site="narrowed")
    assert f"#{one}" in other.see(other.url("job", "acts"))
    assert f"#{two}" in other.see(other.url("job", "acts"))
