"""Whatever is stored, the pages show it as text, and none of them breaks."""

from __future__ import annotations

import html
import json
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
    Process,
    Rate,
    RecurringTask,
    Semaphore,
)

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


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[1", '{"args":7,"kwargs":{}}', '{"args":[{"__sq_no__":1}],"kwargs":{}}',
     "[" * 5_000, '{"args":[' + "[" * 5_000, "7", '"x"', "[[1, 2, 3]]", "{}"],
)  # fmt: skip
def test_json_that_is_none_breaks_no_page(scene: Scene, text: str) -> None:
    [failed], [claim] = scene.failed(1), scene.claimed(1)
    Job.objects.update(
        arguments=text, return_value=text, errors=text, worker_ids=text,
    )  # fmt: skip
    Process.objects.update(metadata=text)
    visitor = Visitor(*EVERYTHING)
    for page in all_pages(visitor, [failed, claim.job_id]):
        assert page.status == 200
    assert visitor.see(visitor.url("process", "change", scene.worker.id)).status == 200


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
@pytest.mark.parametrize("value", VALUES)
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
    state: str, column: str, value: str, scene: Scene
) -> None:
    make = {
        "ready": lambda: scene.ready(3),
        "scheduled": lambda: scene.ready(3, delay=HOUR),
        "failed": lambda: scene.failed(3),
        "claimed": lambda: [claim.job_id for claim in scene.claimed(3)],
    }
    first, *_ = jobs = make[state]()
    with connections["default"].cursor() as cursor:
        table = f"steady_queue_{state}_executions"
        cursor.execute(f"UPDATE {table} SET {column} = {value} WHERE job_id = {first}")
    visitor = Visitor(*EVERYTHING)
    page = visitor.list(state={"claimed": "running"}.get(state, state))
    assert sorted(page.ids) == jobs
    assert visitor.list().status == visitor.list("pause").status == 200
    assert visitor.list("process").status == 200
    for job in jobs:
        assert visitor.client.get(visitor.url("job", "change", job), follow=True).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    ("model", "table", "column"),
    [
        ("process", "processes", "last_heartbeat_at"),
        ("process", "processes", "name"),
        ("semaphore", "semaphores", "[limit]"),
        ("semaphore", "semaphores", "value"),
        ("rate", "rates", "gate"),
        ("rate", "rates", "line"),
        ("rate", "rates", "shift"),
        ("rate", "rates", "[limit]"),
        ("rate", "rates", "period"),
        ("rate", "rates", "burst"),
        ("recurringtask", "recurring_tasks", "updated_at"),
        ("recurringtask", "recurring_tasks", "schedule"),
        ("pause", "pauses", "created_at"),
    ],
)
def test_no_column_of_another_damaged_row_breaks_its_list(
    model: str, table: str, column: str, value: str, scene: Scene
) -> None:
    present = "2026-01-01 00:00:00"
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO steady_queue_semaphores (key, value, [limit]) VALUES ('k', 1, 1)"
        )
        cursor.execute(
            "INSERT INTO steady_queue_rates (key, gate, line, shift, [limit], period, burst) "
            "VALUES ('k', 1, 1, 1, 1, 1000000, 1)"
        )
        cursor.execute("INSERT INTO steady_queue_pauses VALUES (%s, 'mail')", [present])
    RecurringTask.objects.create(
        key="daily", task_path="a.b", schedule="@daily", timezone="UTC", arguments="",
        backend_name="default", queue_name="q",
        created_at=f"{present}Z", updated_at=f"{present}Z",
    )  # fmt: skip
    with connections["default"].cursor() as cursor:
        cursor.execute(f"UPDATE steady_queue_{table} SET {column} = {value}")
    visitor = Visitor(*EVERYTHING)
    keys = {
        "process": scene.worker.id, "semaphore": "k", "rate": "k", "recurringtask": "daily",
        "pause": "mail",
    }  # fmt: skip
    for each in keys:
        assert visitor.list(each).status == 200
    url = visitor.url(model, "change", keys[model])
    assert visitor.client.get(url, follow=True).status_code == 200


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
