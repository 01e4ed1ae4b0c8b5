"""Names, messages and arguments that hold line breaks: what is one line stays one line."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from steady_queue_core import task
from steady_queue_core.command_line.status import Snapshot
from steady_queue_core.command_line.watch import Watch
from steady_queue_core.errors import SteadyQueueError
from steady_queue_core.models import FailedExecution, Job, Queue, ReadyExecution
from steady_queue_core.models.process import register

from ..core.driver import Driver
from ..models.everywhere import on_every_database
from ..models.recurrence import tasks
from .invoking import invoke

FORGED = "x\n  state:           finished\r\u2028\x85\u061c\u202eForged"
SHOWN = "x\\n  state:           finished\\r\\u2028\\x85\\u061c\\u202eForged"


@task
def greet(**names: str) -> None:
    """Fail."""
    raise ValueError(FORGED)


def greeted(using: str) -> int:
    """Return the id of a job that has failed, with forged names in each column of text."""
    key = "to\n    forged"
    result = greet.using(backend="default").enqueue(**{key: "Ada"})
    Driver(using).work()
    jobs = Job.objects.using(using).filter(pk=result.id)
    jobs.update(queue_name=FORGED, task_path=FORGED, concurrency_key=FORGED, backend_name=FORGED)
    failed = FailedExecution.objects.using(using).filter(pk=result.id)
    failed.update(exception_class=FORGED)
    return int(result.id)


@on_every_database
def test_a_job_is_shown_in_lines_of_its_own(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    job_id = greeted(using)
    errors = [[FORGED, f"Traceback\n{FORGED}"]]
    Job.objects.using(using).filter(pk=job_id).update(
        errors=json.dumps(errors), worker_ids=json.dumps([FORGED])
    )
    lines = invoke("show", job_id, "--traceback").lines
    assert [line for line in lines if "state:" in line and SHOWN not in line] == [
        "  state:           failed",
        # Of the traceback, which has several lines.
        "        state:           finished\\r\\u2028\\x85\\u061c\\u202eForged",
    ]
    assert lines[0] == f"Job {job_id}: {SHOWN}"
    for label in ("queue", "workers", "concurrency key", "backend"):
        assert f"  {label + ':':<17}{SHOWN}" in lines
    assert f"  error:           {SHOWN}: {SHOWN}" in lines
    assert f"    {SHOWN}" in lines
    assert [line for line in lines if "forged=" in line] == ["    to\\n    forged='Ada'"]


@on_every_database
def test_every_list_has_a_line_for_each_row(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    greeted(using)
    Queue(FORGED, using).pause()
    register(
        using, kind="worker", name=FORGED, pid=1, hostname=FORGED, supervisor_id=None,
        metadata=json.dumps({"queues": [FORGED]}),
    )  # fmt: skip
    for command in (["status"], ["watch", "--times", 1], ["queues"], ["jobs"], ["processes"]):
        out = invoke(*command).out
        assert SHOWN[:20] in out, command
        assert not [line for line in out.splitlines() if line.startswith("  state:")], command
        assert not {*"\r\u2028\x85\u061c\u202e"} & {*out}, command
    assert f"paused: {SHOWN}" in invoke("status").lines


@pytest.mark.django_db
def test_a_problem_of_a_queue_is_one_line() -> None:
    greet.enqueue()
    register(
        "default", kind="worker", name="hand", pid=1, hostname="web-1", supervisor_id=None,
        metadata=json.dumps({"queues": ["other"]}),
    )  # fmt: skip
    ReadyExecution.objects.update(queue_name=FORGED, created_at=timezone.now() - timedelta(hours=2))
    told = invoke("health", "--ready", "--max-wait", "1h")
    assert told.err.splitlines() == [
        f"no live worker serves the queue {SHOWN}",
        f"the queue {SHOWN} waits 2 h, over 1 h",
    ]


@pytest.mark.django_db
def test_a_message_of_several_lines_cannot_pass_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*given: object) -> None:
        raise SteadyQueueError("The job\nHealthy.")

    monkeypatch.setattr(Snapshot, "of", fail)
    assert invoke("status").err == "The job\n    Healthy.\n"
    assert "The job\\nHealthy." in invoke(Watch.name, "--times", 1).lines
