"""A host that is lost, and all that was on it, costs what it was running and a bounded few."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for

#: How many jobs that were not running any more, or not yet, a host may cost.
FEW = 32


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_container_killed_as_a_whole_costs_what_ran_and_a_few_more(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    threads = 5
    project = make_project(queue(processes=1, threads=threads, state_directory="marks"), **where)
    project.enqueue("work", *[[0.002]] * 400)
    project.enqueue("work_again", *[[0.002]] * 400)
    first = project.start()
    first.wait_ready(1)
    held = [project.count("claimed_executions")]

    def many_started() -> bool:
        held.append(project.count("claimed_executions"))
        return len(project.attempts()) > 400

    wait_for(many_started, 60, "many starts")
    # None of these could be told from those that ran.
    assert max(held) <= threads + FEW
    # Not one after the other: a worker whose supervisor is gone gives back what it can.
    os.killpg(first.pid, signal.SIGKILL)
    first.wait_exit()
    wait_for(lambda: not first.children(), 10, "the end of all")
    running = {attempt.job_id for attempt in project.attempts() if attempt.ended_at is None}
    assert len(running) <= threads
    shutil.rmtree(project.folder / "marks")
    project.start().wait_ready(1)
    project.wait_done(60)
    stop_all(project)
    cost = failed(project) | repeated(project)
    print(f"\n{len(cost)} jobs failed or ran again; {len(running)} were running")
    assert len(cost - running) <= FEW
    states = {row.states for row in project.snapshot().jobs.values()}
    assert states <= {("finished",), ("failed",)}


def failed(project: Project) -> set[int]:
    return {job_id for job_id, row in project.snapshot().jobs.items() if row.states == ("failed",)}


def repeated(project: Project) -> set[int]:
    starts = Counter(attempt.job_id for attempt in project.attempts())
    return {job_id for job_id, times in starts.items() if times > 1}


@pytest.mark.parametrize("prefetch", [0, pytest.param(4, marks=pytest.mark.thorough)])
def test_a_worker_never_holds_more_than_it_can_run_and_its_prefetch(
    make_project: MakeProject, prefetch: int
) -> None:
    project = make_project({"workers": [{"threads": 2, "coroutines": 1, "prefetch": prefetch}]})
    project.enqueue("work", *[[0.005]] * 500)  # They take as long as many looks.
    project.start().wait_ready(1)
    most = 0
    while project.unfinished():
        most = max(most, project.count("claimed_executions"))
    stop_all(project)
    assert 0 < most <= 2 + 1 + prefetch
