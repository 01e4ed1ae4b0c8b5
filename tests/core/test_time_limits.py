"""Time limits as options of tasks, calls and backends: what holds, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from steady_queue_core import task
from steady_queue_core.compat import InvalidTask, task_backends
from steady_queue_core.features.time_limits.options import TimeLimit
from steady_queue_core.models import Job
from steady_queue_core.processes.worker.time_outs import time_limit_of
from steady_queue_core.tasks.metadata import JobMetadata
from steady_queue_core.testing import run_enqueued_tasks

from ..models.recurrence import tasks

PATH = "tests.core.test_time_limits.plain"


@task
def plain() -> None:
    """Do nothing."""


@task(timeout=30, timeout_grace=timedelta(seconds=2))
def limited() -> None:
    """Do nothing."""


@task(timeout="never")
def unlimited() -> None:
    """Do nothing."""


@task(timeout=timedelta(minutes=1), takes_context=True)
def remaining(context: Any) -> float:
    return float((context.deadline - context.task_result.started_at).total_seconds())


@task(takes_context=True)
def whenever(context: Any) -> bool:
    return context.deadline is None


def limit_of(chosen: Any) -> TimeLimit | None:
    """Return the limit of a job of this task, as a worker reads it."""
    chosen.enqueue()
    job = Job.objects.latest("pk")
    claim: Any = SimpleNamespace(metadata=job.metadata)
    backend: Any = task_backends["default"]
    return time_limit_of(claim, chosen, backend)


@pytest.mark.django_db
def test_the_call_goes_before_the_task_and_that_before_the_backend(settings: Any) -> None:
    assert limit_of(plain) is None
    assert limit_of(limited) == TimeLimit(30, 2)
    assert limit_of(limited.using(timeout=5)) == TimeLimit(5, 2)
    assert limit_of(limited.using(timeout_grace=0)) == TimeLimit(30, 0)
    assert limit_of(limited.using(timeout="never")) is None
    settings.TASKS = tasks("default", timeout=60)
    assert limit_of(plain) == TimeLimit(60, 10)
    assert limit_of(plain.using(timeout=0.5)) == TimeLimit(0.5, 10)
    assert limit_of(limited) == TimeLimit(30, 2)
    assert limit_of(unlimited) is None
    assert limit_of(plain.using(timeout="never")) is None


@pytest.mark.django_db
def test_only_a_call_stores_its_limit() -> None:
    limited.enqueue()
    assert Job.objects.latest("pk").metadata is None
    limited.using(timeout=timedelta(minutes=2), timeout_grace=1).enqueue()
    kept = JobMetadata.read(Job.objects.latest("pk").metadata)
    assert kept == JobMetadata(timeout=120.0, timeout_grace=1.0)


@pytest.mark.parametrize("damaged", ['{"timeout": -1}', '{"timeout": "soon"}', '{"timeout": [1]}'])
def test_a_damaged_limit_of_a_row_is_none(damaged: str) -> None:
    assert JobMetadata.read(damaged).timeout is None


@pytest.mark.django_db
def test_the_context_knows_the_deadline() -> None:
    remaining.enqueue()
    remaining.using(timeout=5).enqueue()
    whenever.enqueue()
    first, second, third = run_enqueued_tasks()
    assert (first.return_value, second.return_value) == (60.0, 5.0)
    assert third.return_value is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout must be a timedelta or a number of seconds above 0 and at most "
                         "3650 days, or 'never', not int 0."),
        ({"timeout": -1.5}, "timeout must be"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"timeout": float("inf")}, "timeout must be"),
        ({"timeout": True}, "timeout must be"),
        ({"timeout": "soon"}, "timeout must be"),
        ({"timeout": timedelta(days=4000)}, "timeout must be"),
        ({"timeout": timedelta(0)}, "timeout must be"),
        ({"timeout_grace": -1}, "timeout_grace must be a timedelta or a number of seconds of at "
                                "least 0 and at most 3650 days, not int -1."),
        ({"timeout_grace": "never"}, "timeout_grace must be"),
    ],
)  # fmt: skip
def test_wrong_limits_are_refused_where_they_are_given(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask) as raised:
        plain.using(**options)
    assert str(raised.value).startswith(f"{PATH}: {message}")
    with pytest.raises(InvalidTask) as raised:
        task(**options)(plain.func)
    assert message in str(raised.value)


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"argument 'time_out'; did you mean 'timeout'\?"):
        task(time_out=3)(plain.func)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"argument 'time_out'; did you mean 'timeout'\?"):
        plain.using(time_out=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"argument 'max_attempts'; only @task has this option"):
        plain.using(max_attempts=3)  # type: ignore[arg-type]
