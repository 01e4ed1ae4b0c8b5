"""A supervisor with stock settings clears what has finished long ago."""

from __future__ import annotations

from .conftest import MakeProject
from .scenarios import stop_all
from .waiting import wait_for


def test_jobs_that_finished_long_ago_are_cleared_by_default(make_project: MakeProject) -> None:
    project = make_project({})
    supervisor = project.start()
    supervisor.wait_ready(1)
    project.enqueue("work")
    [gone] = project.enqueue("work")
    project.wait_done()
    stop_all(project)
    project.query(
        "UPDATE steady_queue_jobs SET finished_at = datetime(finished_at, '-2 days') WHERE id = ?",
        gone,
    )
    project.start().wait_ready(1)
    wait_for(lambda: project.count("jobs") == 1, 10, "one job is left")
    stop_all(project)
