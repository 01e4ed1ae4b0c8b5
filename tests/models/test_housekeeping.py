"""What a dispatcher clears beside its work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.dialects import portable
from steady_queue_core.models import Job, RecurringExecution
from steady_queue_core.processes import housekeeping
from steady_queue_core.processes.housekeeping import Housekeeping, expired

from .everywhere import Jobs, on_every_database

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"


def tasks(using: str, **periods: timedelta) -> dict[str, Any]:
    return {
        alias: {
            "BACKEND": BACKEND,
            "QUEUES": [],
            "OPTIONS": {"database": using, "clear_finished_jobs_after": period},
        }
        for alias, period in periods.items()
    }


@on_every_database
def test_each_backends_jobs_are_kept_for_its_own_time(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks(using, default=timedelta(hours=1), archive=timedelta(days=30))
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    jobs = Jobs(using)
    short = jobs.finished(5)
    long = jobs.finished(3, backend_name="archive")
    unknown = jobs.finished(2, backend_name="gone")
    young, failed = jobs.finished(1), jobs.failed(1)
    old = [*short, *long, *unknown, *failed]
    present = jobs.dialect.current_time(jobs.connection)
    jobs.all.filter(pk__in=old).update(finished_at=portable.storable(present - timedelta(days=2)))
    keeper = Housekeeping(using)

    rounds = 1
    while keeper.do(jobs.connection, jobs.dialect) == 0.0:
        rounds += 1

    assert jobs.ids(Job) == sorted([*long, *unknown, *young, *failed])
    assert rounds > 3
    assert 0 < keeper.do(jobs.connection, jobs.dialect) <= housekeeping.INTERVAL


@on_every_database
def test_slots_are_cleared_but_for_the_last_of_each_schedule(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, default=timedelta(0))
    jobs = Jobs(using)
    present = jobs.dialect.current_time(jobs.connection)
    slots = RecurringExecution.objects.using(using)
    for key, days in (("daily", (4, 3, 2, 0)), ("yearly", (400, 35)), ("young", (0,))):
        for age in days:
            run_at = portable.storable(present - timedelta(days=age))
            slots.create(task_key=key, run_at=run_at, created_at=run_at)

    for _, sweep in expired(using, present):
        sweep.clear(100)

    left = slots.order_by("task_key").values_list("task_key", "run_at")
    ages = [(key, (present - portable.aware(run_at)).days) for key, run_at in left]
    assert ages == [("daily", 0), ("yearly", 35), ("young", 0)]
