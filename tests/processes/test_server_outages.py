"""A server that is not there, that is killed and that freezes costs no job and repeats none."""

from __future__ import annotations

import time

import pytest

from .plant import PROCESSES, Plant
from .waiting import wait_for

JOBS = 150


def test_a_killed_server_is_waited_for(plant: Plant) -> None:
    """By those that are at work, and by those that are started meanwhile."""
    # The connections of tasks are lost as well.
    plant.project.enqueue("note", *[[0.01]] * 10)
    plant.project.wait_done()
    plant.enqueue(JOBS)
    plant.wait_attempts(JOBS // 4)
    plant.server.kill()
    late = plant.project.start()
    plant.wait_said("is unavailable", PROCESSES)
    try:
        wait_for(lambda: "is unavailable" in late.errors(), 20, "word of the late supervisor")
        assert "could not be examined" in plant.check()
        plant.server.start()
        late.wait_ready(2)
        plant.project.enqueue("note", *[[0.01]] * 10)
        plant.require_all_done()
        plant.wait_said("is available again", PROCESSES)
        plant.require_few_words(5 * PROCESSES)
        assert late.errors().count("is unavailable") <= PROCESSES
    finally:
        assert late.stop() == 0


@pytest.mark.thorough
def test_a_frozen_server_is_waited_for(plant: Plant) -> None:
    """Longer than leases last, with two supervisors: none declares the other's workers dead."""
    other = plant.project.start()
    try:
        other.wait_ready(2)
        plant.enqueue(JOBS)
        long = plant.project.enqueue("work", *[[3.0]] * 2)
        for job_id in long:
            plant.project.wait_started(job_id)
        plant.server.freeze()
        time.sleep(2.5)
        plant.server.thaw()
        plant.require_all_done()
        assert "declared dead" not in other.errors() + plant.said()
    finally:
        plant.server.restore()
        assert other.stop() == 0
