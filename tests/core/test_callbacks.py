"""Callbacks that cannot run are found where they are declared, by a check, or at the enqueue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from steady_queue_core import task
from steady_queue_core.checks import check_callbacks
from steady_queue_core.compat import InvalidTask
from steady_queue_core.dialects import (
    ClaimedJob,
    Ending,
    EnqueuedJob,
    FollowUp,
    Limit,
    NewJob,
    Outcome,
    Sequel,
)
from steady_queue_core.processes.worker.wire import read_outcome, write_outcome
from steady_queue_core.tasks import registry
from steady_queue_core.tasks.copies import rebuilt

from ..models.recurrence import tasks

HERE = __name__


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.TASKS = tasks("default") | {"elsewhere": tasks("nowhere")["default"]}
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@task
def told(result_id: str) -> None:
    """Do nothing."""


@task
def told_of_failure(result_id: str, path: str, message: str) -> None:
    """Do nothing."""


@task
def told_of_everything(*args: str) -> None:
    """Do nothing."""


def work() -> None:
    """Do nothing."""


def first(*args: str) -> None:
    """Do nothing."""


def second(*args: str) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("on_success", 3, "must be a task or its dotted path, not of type int"),
        ("on_success", work, "Put @task on the function"),
        ("on_failure", "nonsense", "such as 'shop.tasks.report', not 'nonsense'"),
        ("on_failure", "a..b", "not 'a..b'"),
        ("on_failure", told, "cannot be called with the id of the result, the path"),
        ("on_success", told_of_failure, "missing a required argument"),
        ("on_success", f"{HERE}.told_of_failure", "missing a required argument"),
        ("on_failure", f"{HERE}.work", "would follow each other without end"),
        ("on_success", f"{HERE}.work", "would follow each other without end"),
    ],
)
def test_what_is_no_callback_is_refused_by_name(option: str, value: Any, reason: str) -> None:
    with pytest.raises(
        InvalidTask, match=f"{HERE}.work.*{option if 'end' not in reason else ''}"
    ) as found:
        task(**{option: value})(work)
    assert reason in str(found.value)


@pytest.mark.parametrize(
    ("callback", "reason"),
    [
        (told.using(run_after=timedelta(hours=1)), "a callback is due at once"),
        (told.using(metadata={"a": 1}), "may change its queue_name, priority and backend"),
    ],
)
def test_options_that_a_callback_cannot_have_are_refused(callback: Any, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        task(on_success=callback)(work)
    with pytest.raises(InvalidTask, match=reason):
        told_of_everything.using(on_success=callback)


def test_a_path_may_name_a_task_of_later() -> None:
    early = task(on_failure=f"{HERE}.second")(first)
    [problem] = check_callbacks(None)
    assert problem.id == "steady_queue.E011"
    assert f"{HERE}.first: on_failure is '{HERE}.second', which is no task" in problem.msg
    with pytest.raises(InvalidTask, match="no task that is registered"):
        early.enqueue()
    task(second)
    assert check_callbacks(None) == []


def test_the_nearest_name_is_told() -> None:
    task(on_success=f"{HERE}.tolt")(first)
    [problem] = check_callbacks(None)
    assert f"Did you mean '{HERE}.told'?" in problem.msg


def test_tasks_cannot_call_each_other_back_without_end() -> None:
    task(on_failure=f"{HERE}.second")(first)
    with pytest.raises(InvalidTask, match=r"second -> .*first -> .*second would follow"):
        task(on_success=f"{HERE}.first")(second)


def test_a_cycle_behind_a_task_is_found_too() -> None:
    task(on_failure=f"{HERE}.second")(first)
    path, late = f"{HERE}.second", task(second)
    registry._registered[path] = rebuilt(
        late, job_metadata=task(on_success=f"{HERE}.first")(told.func).job_metadata
    )
    with pytest.raises(InvalidTask, match="without end"):
        task(on_success=f"{HERE}.first")(work)


def test_a_callback_must_be_in_the_same_database() -> None:
    own = task(on_success=told.using(backend="elsewhere"))(work)
    [problem] = check_callbacks(None)
    assert "whose backend 'elsewhere' does not store its jobs in the database" in problem.msg
    with pytest.raises(InvalidTask, match="'elsewhere'"):
        own.enqueue()


CLAIM: Any = ClaimedJob(
    1,
    2,
    "q",
    0,
    "a.b",
    "default",
    "[]",
    0,
    1,
    None,
    None,
    None,
    None,
    None,  # type: ignore[arg-type]
)


def test_the_wire_carries_what_a_task_leaves() -> None:
    at = timezone.now()
    jobs = [
        NewJob(queue_name="q", rank=-3, task_path="a.b", backend_name="x", arguments="[1]"),
        NewJob(
            queue_name="q", rank=3, task_path="a.b", backend_name="x", arguments="é",
            max_attempts=4, run_at=at, metadata="{}",
            limit=Limit(key="k", to=2, duration=timedelta(days=3, microseconds=7), discards=True),
        ),
        NewJob(
            queue_name="q", rank=3, task_path="a.b", backend_name="x", arguments="",
            delay=timedelta(days=-1, microseconds=5),
        ),
    ]  # fmt: skip
    follow_ups = (FollowUp(jobs[0], stored=EnqueuedJob(7, at)), *map(FollowUp, jobs[1:]))
    outcome = Outcome(Ending.FINISHED, 1, 2, "q", 0, sequel=Sequel(follow_ups, "{}"))
    assert read_outcome(write_outcome(outcome), CLAIM) == (outcome, None)


@pytest.mark.parametrize(
    "nonsense",
    [
        b'3', b'[3]', b'[{}]', b'{"a": 1}',
        b'[{"queue_name":1,"rank":0,"task_path":"a","backend_name":"x","arguments":""}]',
        b'[{"queue_name":"q","rank":"0","task_path":"a","backend_name":"x","arguments":""}]',
        b'[{"queue_name":"q","rank":0,"task_path":"a","backend_name":"x","arguments":"","no":1}]',
        b'[{"queue_name":"q","rank":0,"task_path":"a","backend_name":"x","arguments":"",'
        b'"delay":["x",1,1]}]',
    ],
)  # fmt: skip
def test_nonsense_on_the_wire_is_refused(nonsense: bytes) -> None:
    with pytest.raises(ValueError, match=r"job|outcome"):
        read_outcome(b'{"ending":"finished","follow_ups":' + nonsense + b"}", CLAIM)
