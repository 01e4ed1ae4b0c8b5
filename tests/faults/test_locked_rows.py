"""Whoever keeps a row locked holds up the job that needs it, and no other one."""

from __future__ import annotations

import pytest

from ..processes.conftest import EACH_SERVER
from .sweep import sweep


@pytest.mark.slow
@pytest.mark.parametrize("database", EACH_SERVER)
def test_a_lock_holds_up_one_job_at_the_most(database: str) -> None:
    report = sweep(database, "threads", places=())
    print(report)
    assert not report.wrong, "\n".join(report.wrong)
