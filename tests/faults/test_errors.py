"""Whatever code of the project raises, one job at the most ends by it."""

from __future__ import annotations

import random

import pytest

from ..processes.conftest import EACH_SERVER
from ..sizes import sized
from . import enqueues, schedules, starts
from .app.switch import ERRORS
from .report import Report
from .sweep import EXECUTORS, cells, some, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # What a merge does takes a few seconds.
    pytest.mark.parametrize("database", ["sqlite", *EACH_SERVER]),
]

#: One of each kind that something may treat in its own way.
FEW = (
    "ValueError", "SystemExit", "KeyboardInterrupt", "CancelledError", "MemoryError",
    "InterfaceError", "DriverError", "SilentError",
)  # fmt: skip


def require_well(report: Report) -> None:
    print(report)
    assert not report.wrong, "\n".join(report.wrong)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_error_ends_one_job_at_the_most(
    database: str, executor: str, pytestconfig: pytest.Config
) -> None:
    chosen = sized(pytestconfig, merge=some(executor, FEW, 2), whole=cells(executor))
    require_well(sweep(database, executor, chosen, locks=()))


def test_an_error_is_for_who_enqueues(database: str, pytestconfig: pytest.Config) -> None:
    few = random.Random(1).sample(enqueues.cells(FEW), 60)
    require_well(enqueues.sweep(database, sized(pytestconfig, merge=few, whole=enqueues.cells())))


def test_an_error_leaves_out_one_run(database: str, pytestconfig: pytest.Config) -> None:
    few = ("InterfaceError", "SilentError")
    errors = sized(pytestconfig, merge=few, whole=tuple(ERRORS))
    require_well(schedules.sweep(database, errors))


def test_an_error_in_a_hook_ends_no_process(database: str, pytestconfig: pytest.Config) -> None:
    errors = sized(pytestconfig, merge=("ValueError", "SystemExit"), whole=tuple(ERRORS))
    require_well(starts.sweep(database, errors))
