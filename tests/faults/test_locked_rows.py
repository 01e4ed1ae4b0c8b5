"""Whoever keeps a row locked holds up the job that needs it, and no other one."""

from __future__ import annotations

import random

import pytest

from ..processes.conftest import EACH_SERVER
from ..sizes import sized
from .locks import LOCKS
from .sweep import sweep


@pytest.mark.slow
@pytest.mark.timeout(1800)  # What a merge does takes a few seconds.
@pytest.mark.parametrize("database", EACH_SERVER)
def test_a_lock_holds_up_one_job_at_the_most(database: str, pytestconfig: pytest.Config) -> None:
    few = random.Random(1).sample(LOCKS, 9)
    report = sweep(database, "threads", (), sized(pytestconfig, merge=few, whole=LOCKS))
    print(report)
    assert not report.wrong, "\n".join(report.wrong)
