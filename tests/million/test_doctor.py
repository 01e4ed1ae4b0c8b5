"""The doctor reads a bounded number of rows, whatever the history."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core.doctor import examine, examine_job

from .building import Shape
from .conftest import LARGE, Histories
from .costs import Meter
from .test_costs import BACKEND, on_every_kind

#: The first of the tests of a database builds it, which takes a busy machine a while.
pytestmark = pytest.mark.timeout(600)

#: Each queue is counted up to 10,000, which some servers read twice.
COUNTS = 300_000


@on_every_kind
@pytest.mark.django_db
def test_no_examination_reads_the_history(histories: Histories, kind: str, settings: Any) -> None:
    using, shape = histories.alias(kind, LARGE, analyzed=True), Shape.of(LARGE)
    options = {"database": using}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}
    with Meter(using).undone() as meter:
        found = examine(using)
    assert found
    assert "not-examined" not in [each.code for each in found], found
    assert 0 < meter.rows <= COUNTS, max(meter.costs)
    for state in ("ended", "ready", "scheduled", "claimed", "blocked"):
        with Meter(using).undone() as meter:
            found = examine_job(shape.first(state), using)
        assert "not-examined" not in [each.code for each in found], found
        assert 0 < meter.rows <= COUNTS, (state, max(meter.costs))
