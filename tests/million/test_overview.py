"""The overview reads a bounded number of rows, whatever the history."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.transaction import atomic, set_rollback

from steady_queue_core.dialects import tables
from steady_queue_core.models import Sample, Statistic
from steady_queue_core.overview import WINDOWS, Overview, Scope
from steady_queue_core.statistics.tally import HOUR, MINUTE, RECENT_HOUR

from .conftest import LARGE, Histories
from .costs import Meter
from .test_costs import BACKEND, on_every_kind

#: The first of the tests of a database builds it, which takes a busy machine a while.
pytestmark = pytest.mark.timeout(600)

#: Six states are counted up to 10,000 and all queues together up to 30,000, which some servers
#: read twice, and look up in the table.
COUNTS = 200_000
#: What a statement may read that looks up jobs: those that run, and those of recurring tasks.
LOOKED_UP = 10_000
SERIES = 24
#: What it may read of the statistics and samples: more than there are in an hour and the sums of a
#: day, which some servers read twice, and less than there are in all.
OF_AN_HOUR = 10_000


def fill(using: str, minute: int) -> None:
    """Have statistics of a week, up to an hour after ``minute``."""
    spans = {
        MINUTE: range(-60, 120),
        RECENT_HOUR: range(0, 2880, 60),
        HOUR: range(2880, 10_000, 60),
    }
    Statistic.objects.using(using).bulk_create(
        Statistic(
            span=span, minute=minute - ago, stored_minute=minute, queue_name=f"q{number % 10}",
            task_path=f"shop.tasks.t{number}", writer=1, finished=7, run_histogram=",,1,2,4",
        )
        for span, minutes in spans.items()
        for ago in minutes
        for number in range(SERIES)
    )  # fmt: skip
    Sample.objects.using(using).bulk_create(
        Sample(minute=minute - ago, queue_name=name, ready=1, oldest_wait_ms=1)
        for ago in range(-60, 600)
        for name in ("", *(f"q{number}" for number in range(10)))
    )


@on_every_kind
@pytest.mark.django_db
def test_the_overview_reads_no_history(histories: Histories, kind: str, settings: Any) -> None:
    using = histories.alias(kind, LARGE, analyzed=True)
    options = {"database": using}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}
    with atomic(using=using):
        minute = Overview.of(Scope(using)).moment.minute
        fill(using, minute // 60 * 60)
        for window in WINDOWS.values():
            with Meter(using).undone() as meter:
                found = Overview.of(Scope(using, window))
            assert len(found.queues) == 10
            assert len(found.history.by_task) == SERIES
            assert found.problems
            assert 0 < meter.rows <= COUNTS, max(meter.costs)
            of_jobs = [cost for cost in meter.costs if tables.JOBS in cost.statement]
            assert of_jobs
            assert max(of_jobs).rows <= LOOKED_UP, max(of_jobs)
            [of_past] = [cost for cost in meter.costs if tables.SAMPLES in cost.statement]
            assert window.length > 60 or 0 < of_past.rows <= OF_AN_HOUR, of_past
        set_rollback(True, using=using)
