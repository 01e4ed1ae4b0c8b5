"""What is done with a queryset of jobs is done with its rows, and with no others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db.models import Count, Q

from steady_queue_core.dialects import portable
from steady_queue_core.models import (
    BlockedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.models.job import JobManager
from steady_queue_core.models.job_queryset import JobQuerySet

from .everywhere import Jobs, on_every_database

HOUR = timedelta(hours=1)
ENDED = Q(finished_at__isnull=False)


class Act(NamedTuple):
    """A method, and the state of the jobs that it changes."""

    do: Callable[[Any], int]
    make: Callable[[Jobs, int, str], list[int]]
    is_done: Callable[[Jobs, int], bool]
    #: What the method cannot be called without.
    needs: tuple[Any, ...] = ()


def failed(jobs: Jobs, count: int, path: str) -> list[int]:
    return jobs.failed(count, task_path=path)


def scheduled(jobs: Jobs, count: int, path: str) -> list[int]:
    return jobs.ready(count, task_path=path, delay=HOUR)


def of_each_state(jobs: Jobs, count: int, path: str) -> list[int]:
    half = count // 2
    return sorted([*scheduled(jobs, half, path), *failed(jobs, count - half, path)])


def finished(jobs: Jobs, count: int, path: str) -> list[int]:
    return jobs.finished(count, task_path=path)


def is_ready(jobs: Jobs, pk: int) -> bool:
    return pk in jobs.ids(ReadyExecution)


def has_failed(jobs: Jobs, pk: int) -> bool:
    return pk in jobs.ids(FailedExecution)


def is_gone(jobs: Jobs, pk: int) -> bool:
    return pk not in jobs.ids(Job)


def is_moved(jobs: Jobs, pk: int) -> bool:
    return bool(jobs.all.filter(pk=pk, queue_name="moved").exists())


def is_later(jobs: Jobs, pk: int) -> bool:
    late = portable.storable(jobs.present(jobs.using) + 5 * HOUR)
    return ScheduledExecution.objects.using(jobs.using).filter(pk=pk, due_at__gt=late).exists()


def distinct(jobs: Jobs, count: int, path: str) -> list[int]:
    """Return jobs that are known by the number of their attempts."""
    known = jobs.all.count()
    return [
        pk for each in range(count)
        for pk in jobs.ready(1, task_path=path, max_attempts=known + each + 100)
    ]  # fmt: skip


def has_copy(jobs: Jobs, pk: int) -> bool:
    attempts = jobs.all.get(pk=pk).max_attempts
    return bool(jobs.all.filter(pk__gt=pk, max_attempts=attempts).exists())


def clear(rows: Any, **named: Any) -> int:
    finished_before = Jobs.present(rows.db) + HOUR
    return int(rows.clear_finished_in_batches(finished_before=finished_before, **named))


ACTS = {
    "retry_failed": Act(lambda rows: rows.retry_failed(batch_size=2), failed, is_ready),
    "run_now": Act(lambda rows: rows.run_now(batch_size=2), scheduled, is_ready),
    "move_to": Act(lambda rows: rows.move_to("moved", batch_size=2), scheduled, is_moved),
    "reschedule": Act(
        lambda rows: rows.reschedule(9 * HOUR, batch_size=2), scheduled, is_later, (HOUR,)
    ),
    "enqueue_copies": Act(lambda rows: rows.enqueue_copies(batch_size=2), distinct, has_copy),
    "cancel": Act(lambda rows: rows.cancel(batch_size=2), scheduled, has_failed),
    "discard": Act(lambda rows: rows.discard(batch_size=2), of_each_state, is_gone),
    "clear_finished_in_batches": Act(lambda rows: clear(rows, batch_size=2), finished, is_gone),
}
#: Querysets of a part of ten jobs: five of "one.task" and then five of "another.task".
PARTS: dict[str, tuple[Callable[[Any, list[int]], Any], Callable[[int], bool]]] = {
    "filter": (lambda rows, ids: rows.filter(task_path="one.task"), lambda n: n < 5),
    "exclude": (lambda rows, ids: rows.exclude(task_path="one.task"), lambda n: n >= 5),
    "filter of ids": (lambda rows, ids: rows.filter(pk__in=ids[2:4]), lambda n: n in (2, 3)),
    "reverse": (
        lambda rows, ids: rows.filter(pk__gte=ids[3]).order_by("-pk", "task_path"),
        lambda n: n >= 3,
    ),
    "reverse of the default": (lambda rows, ids: rows.reverse(), lambda n: True),
    "distinct": (lambda rows, ids: rows.filter(pk__lt=ids[3]).distinct(), lambda n: n < 3),
    "none": (lambda rows, ids: rows.none(), lambda n: False),
    "all": (lambda rows, ids: rows.all(), lambda n: True),
    "or": (
        lambda rows, ids: rows.filter(pk=ids[0]) | rows.filter(task_path="another.task"),
        lambda n: n == 0 or n >= 5,
    ),
    "related": (
        lambda rows, ids: rows.filter(pk__gt=ids[0]).select_related("failedexecution").defer("id"),
        lambda n: n > 0,
    ),
    "aggregate": (
        lambda rows, ids: rows.annotate(n=Count("pk")).filter(n=1, pk__lte=ids[6]),
        lambda n: n <= 6,
    ),
    "for update": (lambda rows, ids: rows.filter(pk=ids[9]).select_for_update(), lambda n: n == 9),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "a slice": lambda rows: rows.order_by("pk")[:2],
    "values": lambda rows: rows.values("pk"),
    "values_list": lambda rows: rows.values_list("pk", flat=True),
    r"union\(\)": lambda rows: rows.filter(pk=1).union(rows.filter(pk=2)),
    r"distinct\(\*fields\)": lambda rows: rows.distinct("task_path"),
}


def test_every_method_has_its_act_here() -> None:
    methods = {name for name in vars(JobQuerySet) if not name.startswith("_")}
    assert methods == set(ACTS)
    assert all(hasattr(JobManager, name) for name in methods)


@on_every_database
@pytest.mark.parametrize("name", ACTS)
def test_only_the_rows_of_the_queryset_are_changed(using: str, name: str) -> None:
    act, jobs = ACTS[name], Jobs(using)
    for part, (choose, wanted) in PARTS.items():
        ids = [*act.make(jobs, 5, "one.task"), *act.make(jobs, 5, "another.task")]
        others = jobs.ready(1), jobs.finished(1), jobs.failed(1), jobs.ready(1, delay=HOUR)
        untouched = {pk: jobs.all.filter(pk=pk).values().get() for [pk] in others}

        changed = act.do(choose(jobs.all.filter(pk__in=ids), ids))

        expected = [pk for n, pk in enumerate(ids) if wanted(n)]
        assert changed == len(expected), part
        assert [pk for pk in ids if act.is_done(jobs, pk)] == expected, part
        for pk, row in untouched.items():
            assert jobs.all.filter(pk=pk).values().get() == row, part
        for model in (ReadyExecution, FailedExecution, BlockedExecution, Job):
            model.objects.using(using).all()._raw_delete(using)


@on_every_database
@pytest.mark.parametrize("name", ACTS)
def test_what_is_not_a_whole_queryset_is_refused_and_nothing_changes(using: str, name: str) -> None:
    act, jobs = ACTS[name], Jobs(using)
    ids = act.make(jobs, 4, "one.task")
    for after, choose in REFUSED.items():
        with pytest.raises(TypeError, match=rf"{name}\(\) cannot be called after .*{after}"):
            act.do(choose(jobs.all.all()))
    for size in (0, -1):
        with pytest.raises(ValueError, match="batch_size"):
            getattr(jobs.all.all(), name)(*act.needs, batch_size=size)
    assert not [pk for pk in ids if act.is_done(jobs, pk)]


@pytest.mark.django_db
def test_without_a_time_to_keep_them_clearing_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steady_queue_core.clear_finished_jobs_after", None)
    with pytest.raises(ValueError, match="finished_before is required"):
        Job.objects.clear_finished_in_batches()


@pytest.mark.django_db
def test_a_template_changes_nothing() -> None:
    from django.template import Context, Template

    jobs = Jobs("default")
    [failed_id] = jobs.failed()
    job = jobs.all.get(pk=failed_id)
    text = "{{ jobs.retry_failed }}{{ jobs.discard }}{{ job.retry }}{{ job.discard }}"
    shown = Template(text).render(Context({"jobs": jobs.all.all(), "job": job}))
    assert shown == ""
    assert jobs.ids(FailedExecution) == [failed_id]
