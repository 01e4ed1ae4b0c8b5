"""What is too large for the server fails, in words, and keeps nobody else."""

from __future__ import annotations

import pytest

from .plant import Plant
from .test_server_limits import settings

#: Bytes: less than arguments and results may have by default.
SMALL = 1 << 16


@pytest.mark.parametrize("running_plant", ["mysql", "mariadb"], indirect=True)
def test_larger_packets_than_the_server_takes_fail_their_jobs_alone(plant: Plant) -> None:
    project = plant.project
    [large] = project.enqueue("work_on", ["x" * 500_000], delay=1.0)
    with settings(plant, {"max_allowed_packet": str(SMALL)}):
        answers = project.enqueue("answer", *[[200_000]] * 3)
        failures = project.enqueue("fail_at_length", *[[200_000]] * 3)
        plant.enqueue(50)
        project.wait_done(20)
        with pytest.raises(AssertionError, match="too large for the server"):
            project.enqueue("work_on", ["x" * 500_000])
        plant.enqueue(50)
    plant.own_failures += answers + failures
    plant.require_all_done()
    jobs = project.snapshot().jobs
    assert {jobs[job_id].error for job_id in answers + failures} == {"DataError"}
    assert jobs[large].states == ("finished",)
