"""What users do with jobs is done once, also after a deadlock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, transaction

from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution
from steady_queue_core.models.operations import discard, enqueue_copy, move, reschedule, run_now
from steady_queue_core.models.operations import transition as transition_of_jobs
from steady_queue_core.signals import task_discarded

from .deadlocks import DEADLOCK, Attempts, attempts, deadlock_after
from .everywhere import Jobs, on_every_database

__all__ = ["attempts"]  # A fixture.

#: What is done, the last step of it, and how many jobs are then ready, for later, and there.
OPERATIONS: list[tuple[Callable[[Any], int], Any, str, tuple[int, int, int]]] = [
    (lambda jobs: jobs.discard(), discard, "_delete", (0, 0, 0)),
    (lambda jobs: jobs.move_to(queue_name="other"), move, "_store", (3, 0, 3)),
    (lambda jobs: jobs.reschedule(timedelta(hours=1)), reschedule, "_insert", (0, 3, 3)),
    (lambda jobs: jobs.enqueue_copies(), enqueue_copy, "_enqueue", (6, 0, 6)),
]
EACH = pytest.mark.parametrize(
    ("act", "module", "step", "left"), OPERATIONS, ids=[step for _, _, step, _ in OPERATIONS]
)


def counts(using: str) -> tuple[int, int, int]:
    kinds: list[Any] = [ReadyExecution, ScheduledExecution, Job]
    ready, scheduled, jobs = (kind.objects.using(using).count() for kind in kinds)
    return ready, scheduled, jobs


@on_every_database
@EACH
@pytest.mark.usefixtures("attempts")
def test_an_operation_is_repeated_and_done_once(
    using: str, act: Callable[[Any], int], module: Any, step: str, left: tuple[int, int, int]
) -> None:
    Jobs(using).ready(3)
    with deadlock_after(module, step):
        assert act(Job.objects.using(using)) == 3
    assert counts(using) == left


@on_every_database
@pytest.mark.usefixtures("attempts")
def test_what_is_run_now_is_dispatched_once(using: str) -> None:
    Jobs(using).ready(3, delay=timedelta(hours=1))
    with deadlock_after(run_now, "_dispatch"):
        assert Job.objects.using(using).run_now() == 3
    assert counts(using) == (3, 0, 3)


@on_every_database
@EACH
def test_the_error_reaches_the_caller_who_has_a_transaction(
    using: str,
    attempts: Attempts,
    act: Callable[[Any], int],
    module: Any,
    step: str,
    left: tuple[int, int, int],
) -> None:
    Jobs(using).ready(3)
    with (
        pytest.raises(OperationalError, match=DEADLOCK),
        transaction.atomic(using=using),
        deadlock_after(module, step),
    ):
        act(Job.objects.using(using))
    assert (attempts.deadlocks, counts(using)) == (0, (3, 0, 3))


@on_every_database
@pytest.mark.usefixtures("attempts")
def test_a_discarded_job_is_told_of_once(using: str) -> None:
    told: list[Any] = []

    def receive(task_ids: Any, **_: Any) -> None:
        told.extend(task_ids)

    ids = Jobs(using).ready(3)
    task_discarded.connect(receive)
    try:
        with deadlock_after(transition_of_jobs, "send_after_commit"):
            Job.objects.using(using).discard()
    finally:
        task_discarded.disconnect(receive)
    assert sorted(told) == sorted(map(str, ids))
