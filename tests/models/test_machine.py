"""Whatever is done to a queue, in whatever order, every job is where it should be.

With ``STEADY_QUEUE_TEST_STEPS=1000`` a thousand runs are tried on each database, other ones each
time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .everywhere import on_every_database
from .machine import QueueMachine

RUNS = int(os.environ.get("STEADY_QUEUE_TEST_STEPS", "0"))

SETTINGS = settings(
    max_examples=RUNS or 60,
    derandomize=not RUNS,
    database=None,
    deadline=None,
    phases=[Phase.generate] if not RUNS else list(Phase),
    stateful_step_count=80 if RUNS else 40,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.shared
@pytest.mark.timeout(3600 if RUNS else 120)
@on_every_database
def test_every_job_is_where_it_should_be(using: str) -> None:
    machine = type("Machine", (QueueMachine,), {"using": using})
    run_state_machine_as_test(machine, settings=SETTINGS)
