"""Times are the database's, in any setting of time zones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.models import ClaimedExecution, Queue, ReadyExecution, RecurringTask

from ..doctor.ward import HOUR
from ..models.everywhere import on_every_database
from .planting import Garden

SECONDS = timedelta(seconds=30)


@pytest.mark.parametrize("use_tz", [True, False])
@on_every_database
def test_no_time_is_off_by_a_zone(
    using: str, use_tz: bool, settings: Any, request: pytest.FixtureRequest
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Tokyo"
    garden: Garden = request.getfixturevalue("garden")
    garden.claimed(1)
    garden.ready(1, "mail")
    garden.age(garden.rows(ClaimedExecution), created_at=HOUR / 2)
    garden.age(garden.rows(ReadyExecution), created_at=HOUR / 20)
    Queue("shut", using).pause()
    present = garden.present(using)
    row = RecurringTask(
        key="daily", task_path="tests.app.tasks.noop", schedule="0 6 * * *", timezone="UTC",
        arguments="{}", backend_name="default", queue_name="default",
    )  # fmt: skip
    row.created_at = row.updated_at = garden.dialect.current_time(garden.connection)
    if not use_tz:
        row.created_at = row.updated_at = row.created_at.replace(tzinfo=None)
    row.save(using=using)
    seen = garden.look()
    assert abs(seen.moment.present - present) < SECONDS
    assert abs(seen.longest[0].since - HOUR / 2) < SECONDS
    lines = {each.name: each for each in seen.queues}
    assert abs((lines["mail"].listed.oldest_wait or HOUR) - HOUR / 20) < SECONDS
    [run] = seen.schedules or ()
    assert timedelta(0) < run.at - present <= timedelta(days=1)
    assert run.at.hour == 6
    assert [each.finding.code for each in seen.problems] == []
