"""Whatever code of the project raises, one job at the most ends by it."""

from __future__ import annotations

import pytest

from ..processes.conftest import EACH_SERVER
from ..sizes import sized
from .app.switch import ERRORS
from .sweep import EXECUTORS, sweep

#: One of each kind that something may treat in its own way.
FEW = ("ValueError", "SystemExit", "CancelledError", "MemoryError", "DriverError", "SilentError")


@pytest.mark.slow
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("database", ["sqlite", *EACH_SERVER])
def test_an_error_ends_one_job_at_the_most(
    database: str, executor: str, pytestconfig: pytest.Config
) -> None:
    errors = sized(pytestconfig, merge=FEW, whole=tuple(ERRORS))
    report = sweep(database, executor, errors=errors, locks=())
    print(report)
    assert not report.wrong, "\n".join(report.wrong)
