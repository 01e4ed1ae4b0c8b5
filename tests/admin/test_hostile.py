"""Whatever is stored, the pages show it as text, and none of them breaks."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections

from steady_queue_core import Batch, Workflow, call, group
from steady_queue_core.dialects import portable
from steady_queue_core.models import (
    BatchMember,
    FailedExecution,
    Job,
    JobBatch,
    Pause,
    Process,
    Rate,
    RecurringTask,
    Semaphore,
)
from steady_queue_core.models.process import register

from ..app.tasks import noop
from .places import HOUR, Scene, on_every_database
from .visitor import EVERYTHING, Visitor

NASTY = "<script>alert('x')</script>\"'&{{ 7|add:7 }}{% now 'Y' %}\u202e\u2028\x1b[31m"
PATH = f"shop.{NASTY}"[:255]
STATES = ("", "ready", "scheduled", "blocked", "waiting", "running", "failed", "finished")


def all_pages(visitor: Visitor, jobs: list[int]) -> list[Any]:
    """Return every list and the pages of ``jobs``."""
    models = (
        "pause",
        "process",
        "rate",
        "recurringtask",
        "semaphore",
        "jobbatch",
        "share",
        "overview",
    )
    pages = [visitor.list(state=state) for state in STATES]
    pages += [visitor.list(model) for model in (*models, "overview")]
    return pages + [visitor.see(visitor.url("job", "change", job)) for job in jobs]


@on_every_database
def test_markup_and_control_characters_are_shown_as_text(using: str, scene: Scene) -> None:
    fields = {"queue_name": NASTY, "task_path": PATH}
    [failed], [finished], [claim] = (
        scene.failed(1, **fields), scene.finished(1, **fields), scene.claimed(1, **fields),
    )  # fmt: skip
    [ready], [scheduled] = scene.ready(1, **fields), scene.ready(1, delay=HOUR, **fields)
    [blocked] = scene.blocked(1, key=NASTY, **fields)
    jobs = [failed, finished, claim.job_id, ready, scheduled, blocked]
    stored = json.dumps({"args": [NASTY, "\ud800"], "kwargs": {NASTY: "\0"}})
    Job.objects.using(using).filter(pk__in=jobs).update(
        arguments=stored, return_value=json.dumps(["\udfff", NASTY]),
        worker_ids=json.dumps([NASTY]),
        errors=json.dumps([[NASTY, NASTY], ["x", "\ud800"]]), concurrency_key=NASTY,
        backend_name=NASTY,
    )  # fmt: skip
    FailedExecution.objects.using(using).update(exception_class=NASTY, message=NASTY)
    Process.objects.using(using).update(
        metadata=json.dumps({"queues": [NASTY, "\ud800"], NASTY: NASTY, "threads": {"a": 1}}),
        hostname=NASTY,
    )
    present = Process.objects.using(using).values_list("created_at", flat=True)[0]
    Semaphore.objects.using(using).create(key=NASTY, value=1, limit=1)
    Rate.objects.using(using).create(
        key=NASTY, gate=2**63 - 1, line=2**63 - 1, shift=-(2**63), limit=0, period=-1, burst=2**40
    )
    RecurringTask.objects.using(using).create(
        key=NASTY, task_path=NASTY, schedule=NASTY, timezone=NASTY[:64], arguments=NASTY,
        backend_name=NASTY, queue_name=NASTY, description=NASTY,
        created_at=present, updated_at=present,
    )  # fmt: skip
    visitor = Visitor(*EVERYTHING)

    pages = all_pages(visitor, jobs)
    with Batch(NASTY, metadata={NASTY: NASTY}, on_finish=noop) as batch:
        steps = Workflow(NASTY)
        last = steps.add(call(noop), name=f"{NASTY}2", after=[steps.add(call(noop), name=NASTY)])
        steps.add(group(call(noop)), name=NASTY[:9], after=[last], run_when="finished")
        result = steps.enqueue()
    JobBatch.objects.using(using).update(kind=NASTY[:16])
    pages += [visitor.see(visitor.url("jobbatch", "change", each.id)) for each in (batch, result)]
    assert pages[-1].source.count('aria-label="Graph"') == 1
    pages.append(visitor.list("jobbatch"))
    for page in list(pages):
        for url in {part.split('"')[0] for part in page.source.split('href="/')[1:]}:
            if "/steady_queue/" in url and "/change/" in url:
                pages.append(visitor.see(f"/{html.unescape(url)}"))
    assert len(pages) > 30
    for page in pages:
        assert page.status == 200, page.response.request["PATH_INFO"]
        assert "<script>alert" not in page.source
        assert not {"\x1b", "\u202e"} & {*page.text}
    assert visitor.list(state="ready", queue=NASTY).ids == [ready]
    assert visitor.act("pause", [NASTY], "pause").messages
    for verb in ("disable", "enable", "run_now"):
        assert visitor.act(verb, [NASTY], "recurringtask").messages
    assert visitor.act("retry", [failed], state="failed").messages == ["Retried 1 job."]


@on_every_database
def test_text_of_any_length_is_cut(using: str, scene: Scene) -> None:
    [failed] = scene.failed(1)
    huge = "x" * 1_000_000
    Job.objects.using(using).filter(pk=failed).update(
        arguments=json.dumps({"args": [huge], "kwargs": {}}), return_value=json.dumps(huge),
        errors=json.dumps([["e", huge]] * 3),
    )  # fmt: skip
    FailedExecution.objects.using(using).update(message=huge)
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.url("job", "change", failed))
    assert "characters in all" in page
    assert len(page.source) < 300_000
    assert len(visitor.list(state="failed").source) < 50_000


TEXTS = (
    "", "{", "null", "[1", '{"args":7,"kwargs":{}}', '{"args":[{"__sq_no__":1}],"kwargs":{}}',
    "[" * 5_000, '{"args":[' + "[" * 5_000, "7", '"x"', "[[1, 2, 3]]", "{}",
)  # fmt: skip


@pytest.mark.django_db
def test_json_that_is_none_breaks_no_page(scene: Scene) -> None:
    failed, claimed = scene.failed(len(TEXTS)), scene.claimed(len(TEXTS))
    jobs = [*failed, *[claim.job_id for claim in claimed]]
    processes = [a_process(number) for number in range(len(TEXTS))]
    for job, text in zip(jobs, TEXTS * 2, strict=True):
        Job.objects.filter(pk=job).update(
            arguments=text, return_value=text, errors=text, worker_ids=text
        )
    for process, text in zip(processes, TEXTS, strict=True):
        Process.objects.filter(pk=process).update(metadata=text)
    visitor = Visitor(*EVERYTHING)
    pages = all_pages(visitor, jobs)
    pages += [visitor.see(visitor.url("process", "change", each)) for each in processes]
    for page in pages:
        assert page.status == 200, page.response.request["PATH_INFO"]


def a_process(number: int) -> int:
    return register(
        "default", kind="worker", name=f"worker-{number + 2}", pid=1, hostname="here",
        supervisor_id=None, metadata="{}",
    ).id  # fmt: skip


#: What somebody may have written into a file of SQLite, which checks no types.
VALUES = ("'many'", "x'00ff'", "CAST(x'80' AS TEXT)", "-1.5")
COLUMNS = (
    "queue_name", "task_path", "rank", "arguments", "attempts", "max_attempts", "worker_ids",
    "errors", "return_value", "enqueued_at", "scheduled_at", "started_at", "last_attempted_at",
    "finished_at",
)  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("value", VALUES)
def test_no_column_of_a_damaged_job_breaks_a_page(value: str, scene: Scene) -> None:
    damaged = dict(zip(COLUMNS, scene.failed(len(COLUMNS)), strict=True))
    [good] = scene.failed(1)
    with connections["default"].cursor() as cursor:
        for column, job in damaged.items():
            cursor.execute(f"UPDATE steady_queue_jobs SET {column} = {value} WHERE id = {job}")
    visitor = Visitor(*EVERYTHING)
    jobs = [*damaged.values(), good]
    assert sorted(visitor.list(state="failed").ids) == jobs
    assert sorted(visitor.list().ids) == jobs
    assert visitor.list(state="finished").status == 200
    for job in jobs:
        assert visitor.client.get(visitor.url("job", "change", job), follow=True).status_code == 200
    question = visitor.act("discard", jobs, state="failed")
    page = visitor.post(visitor.url("job"), question.answer(), state="failed")
    assert page.messages == [f"Discarded {len(jobs)} jobs."]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "column"),
    [
        ("ready", "created_at"),
        ("ready", "rank"),
        ("scheduled", "due_at"),
        ("scheduled", "rank"),
        ("failed", "created_at"),
        ("failed", "exception_class"),
        ("failed", "message"),
        ("claimed", "created_at"),
        ("claimed", "process_id"),
    ],
)
def test_no_column_of_a_damaged_execution_breaks_a_page(
    state: str, column: str, scene: Scene
) -> None:
    count = len(VALUES) + 2
    make = {
        "ready": lambda: scene.ready(count),
        "scheduled": lambda: scene.ready(count, delay=HOUR),
        "failed": lambda: scene.failed(count),
        "claimed": lambda: [claim.job_id for claim in scene.claimed(count)],
    }
    jobs = make[state]()
    damage(f"{state}_executions", column, "job_id", jobs)
    visitor = Visitor(*EVERYTHING)
    page = visitor.list(state={"claimed": "running"}.get(state, state))
    assert sorted(page.ids) == jobs
    assert visitor.list().status == visitor.list("pause").status == 200
    assert visitor.list("process").status == 200
    for job in jobs:
        assert visitor.client.get(visitor.url("job", "change", job), follow=True).status_code == 200


def damage(table: str, column: str, key: str, rows: Iterable[Any]) -> None:
    """Write each of the values into one of the rows."""
    with connections["default"].cursor() as cursor:
        for value, row in zip(VALUES, rows, strict=False):
            cursor.execute(
                f"UPDATE steady_queue_{table} SET {column} = {value} WHERE {key} = %s", [row]
            )


#: Of each model the table, its key, and the columns that are damaged.
OTHERS = {
    "process": ("processes", "id", ["last_heartbeat_at", "name"]),
    "semaphore": ("semaphores", "key", ["[limit]", "value"]),
    "rate": ("rates", "key", ["gate", "line", "shift", "[limit]", "period", "burst"]),
    "recurringtask": ("recurring_tasks", "key", ["updated_at", "schedule"]),
    "pause": ("pauses", "queue_name", ["created_at"]),
}


def another_row(model: str, number: int) -> Any:
    """Make a row, and return its key."""
    key, present = f"row{number}", datetime(2026, 1, 1, tzinfo=UTC)
    if model == "process":
        return a_process(number)
    if model == "semaphore":
        return Semaphore.objects.create(key=key, value=1, limit=1).pk
    if model == "rate":
        return Rate.objects.create(
            key=key, gate=1, line=1, shift=1, limit=1, period=1_000_000, burst=1
        ).pk
    if model == "pause":
        return Pause.objects.create(queue_name=key, created_at=portable.storable(present)).pk
    return RecurringTask.objects.create(
        key=key, task_path="a.b", schedule="@daily", timezone="UTC", arguments="",
        backend_name="default", queue_name="q", created_at=present, updated_at=present,
    ).pk  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("model", OTHERS)
def test_no_column_of_another_damaged_row_breaks_its_list(model: str, scene: Scene) -> None:
    for each in OTHERS:
        another_row(each, 100)
    table, key, columns = OTHERS[model]
    rows = [another_row(model, number) for number in range(len(VALUES) * len(columns))]
    for number, column in enumerate(columns):
        damage(table, column, key, rows[number * len(VALUES) :])
    visitor = Visitor(*EVERYTHING)
    for each in OTHERS:
        assert visitor.list(each).status == 200
    for row in rows:
        url = visitor.url(model, "change", row)
        assert visitor.client.get(url, follow=True).status_code == 200, row


@on_every_database
def test_metadata_and_callbacks_that_are_none_break_no_page(using: str, scene: Scene) -> None:
    with Batch("odd", metadata={"a": 1}, on_success=noop) as batch:
        noop.enqueue()
    visitor, rows = Visitor(*EVERYTHING), JobBatch.objects.using(using)
    url = visitor.url("jobbatch", "change", batch.id)
    for text in ("", "{", "null", "[1", "[" * 5_000, "7", '"x"', "[[1, 2, 3]]", "{}", "x" * 2**21,
                 '{"on_success":7,"on_finish":{"task_path":[1],"queue_name":null}}'):  # fmt: skip
        rows.update(metadata=text, callbacks=text)
        page = visitor.see(url)
        assert page.status == 200, text[:20]
        assert len(page.source) < 100_000
        assert visitor.list("jobbatch").status == 200
    last = portable.storable(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    rows.update(created_at=last, finished_at=last, total=-7, failed=-(2**31))
    assert visitor.see(url).status == visitor.list("jobbatch").status == 200


@pytest.mark.django_db
def test_batches_that_are_in_each_other_have_pages(scene: Scene) -> None:
    with Batch("outer") as outer, Batch("inner") as inner:
        noop.enqueue()
    turned = BatchMember.objects.create(batch_id=inner.id)
    own = BatchMember.objects.create(batch_id=inner.id, state=-4)
    JobBatch.objects.filter(pk=outer.id).update(member=turned)
    with Batch("itself") as itself:
        noop.enqueue()
    JobBatch.objects.filter(pk=itself.id).update(member=own)
    BatchMember.objects.filter(pk=own.pk).update(batch_id=itself.id)
    visitor = Visitor(*EVERYTHING)
    for batch in (outer, inner, itself):
        assert visitor.see(visitor.url("jobbatch", "change", batch.id)).status == 200
        assert batch.mermaid()
        url = visitor.url("jobbatch", "cancel", batch.id)
        assert visitor.post(url, {"confirmed": "yes"}).status == 200
        url = visitor.url("jobbatch", "retry", batch.id)
        assert visitor.post(url, {"confirmed": "yes"}).status == 200


@on_every_database
def test_a_process_that_tells_too_much_has_a_page(using: str, scene: Scene) -> None:
    process = register(
        using, kind="worker", name="talker", pid=1, hostname="web-1", supervisor_id=None,
        metadata="{}",
    )  # fmt: skip
    visitor, rows = Visitor(*EVERYTHING), Process.objects.using(using).filter(pk=process.id)
    url = visitor.url("process", "change", process.id)
    much = {f"detail{number}": "x" for number in range(5_000)}
    told = {
        json.dumps(
            {"queues": ["a" * 20] * 30_000, "threads": 3}
        ): "The first 1,000 queues of 30,000",
        json.dumps(much): "The first 50 details of 5,000",
        json.dumps({"queues": ["x" * 100] * 20_000}): "characters are too long to show.",
    }
    for text, note in told.items():
        rows.update(metadata=text)
        page = visitor.see(url)
        assert note in page.text
        assert len(page.source) < 100_000
        for model in ("process", "pause", "overview"):
            assert len(visitor.list(model).source) < 200_000


@on_every_database
def test_queues_that_the_overview_does_not_count_are_told(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steady_queue_core.overview.queues.MOST", 2)
    for name in ("a", "b", "c"):
        noop.using(queue_name=name).enqueue()
    told = "1 queue of this database is not counted here: there are too many."
    assert told in Visitor(*EVERYTHING).list("overview").text
