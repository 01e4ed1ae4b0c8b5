"""The doctor names the cause first, whatever it is, on every database."""

from __future__ import annotations

from typing import Any

import pytest

from ..models.everywhere import on_every_database
from ..models.recurrence import tasks
from . import causes_of_jobs, causes_of_queues, causes_of_waits
from .pasting import require_pasteable
from .ward import CAUSES, HOUR, Cause, Ward, diagnosis

#: These modules fill the table.
assert CAUSES, (causes_of_jobs, causes_of_queues, causes_of_waits)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.title)
@on_every_database
def test_the_cause_is_named_first(using: str, cause: Cause, settings: Any) -> None:
    settings.TASKS = tasks(using)
    ward = Ward(using)
    ward.forget_positions()
    first, *others = diagnosis(ward, cause.plant(ward))
    assert first.code == cause.code, [first, *others]
    assert cause.said in first.text
    assert cause.advised in first.remedy
    assert first.database == using
    for each in (first, *others):
        require_pasteable(each.remedy)
    assert "not-examined" not in [each.code for each in others], others


@on_every_database
def test_what_is_well_is_not_mentioned(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    ward = Ward(using)
    ward.finished(3)
    ward.failed(1)
    ward.claimed(1)
    ward.ready(2)
    ward.ready(delay=HOUR)
    assert diagnosis(ward, None) == []


@on_every_database
def test_a_queue_that_nobody_has_started_is_no_problem(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    ward = Ward(using)
    ward.processes.all().delete()
    [found] = diagnosis(ward, None)
    assert (found.code, found.severity) == ("process-none", "info")
