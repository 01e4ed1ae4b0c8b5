"""Whatever is done to batches and their jobs, all of them end, once, and nothing waits in vain."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from .batch_machine import BatchMachine
from .everywhere import on_every_database
from .recurrence import tasks
from .test_machine import FEW, MANY, RUNS, unsynced


def run(using: str, how: settings, seed: int | None = None) -> None:
    machine = type("Machine", (BatchMachine,), {"using": using})
    if seed is not None:
        machine = hypothesis.seed(seed)(machine)
    with unsynced(using):
        run_state_machine_as_test(machine, settings=how)


@pytest.mark.shared
@pytest.mark.timeout(3600 if RUNS else 240)
@on_every_database
def test_every_batch_ends_with_its_last_job(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    run(using, MANY if RUNS else FEW)
