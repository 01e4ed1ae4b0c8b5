"""Durable steps under kills, and durable sleeps: real processes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import SHORT_LEASE, SPARING, queue, stop_all, thaw, wait_gone, wait_pruned
from .test_checkpoints import freeze_outside_of_statements, steps_of
from .test_delivery import Troubles
from .test_task_processes import task_processes
from .waiting import wait_for

MODULE = ["tests.faultapp.steps"]

#: Seconds that a step takes.
PAUSE = 0.02


def settings_of(
    processes: int = 2, threads: int = 2, executor: str = "threads", **options: Any
) -> dict[str, Any]:
    settings = queue(processes=processes, threads=threads, task_modules=MODULE, **options)
    settings["workers"][0]["executor"] = executor
    return settings


class Count(NamedTuple):
    """How often the functions of a job's steps have come to their end."""

    steps: int
    #: How many of them did so more than once: each time, the attempt was killed before it heard
    #: that the step is stored.
    repeated: int
    attempts: int


def counted(project: Project, job_id: int, steps: int) -> Count:
    """Check, from the trace of a job alone, that its steps were taken once, and count those that
    were killed between their end and their storing."""
    trace: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for event, token, step in steps_of(project)[job_id]:
        trace[token].append((event, step))
    ended: dict[int, list[int]] = defaultdict(list)
    stored: dict[int, set[int]] = defaultdict(set)
    for token in sorted(trace):
        for event, step in trace[token]:
            if event == "return":
                ended[step].append(token)
            elif event != "begin":
                stored[step].add(int(event.removeprefix("stored-by-")))
    assert sorted(ended) == sorted(stored) == [*range(steps)]
    repeated = 0
    for step, tokens in ended.items():
        *killed, last = tokens
        # Every attempt has seen the value of one, which is the last that was taken.
        assert stored[step] == {last}, (step, tokens, stored[step])
        for token in killed:
            # It came to its end, and nothing more was heard of this attempt.
            assert trace[token][-1] == ("return", step), (step, trace[token])
            repeated += 1
    rows = project.query(
        "SELECT name, position, data FROM steady_queue_steps WHERE job_id = ? ORDER BY position",
        job_id,
    )
    assert [(name, int(data)) for name, _, data in rows] == [
        (f"step {step}", ended[step][-1]) for step in range(steps)
    ]
    return Count(steps, repeated, len(trace))


def walked(project: Project, ids: list[int], steps: int) -> list[Count]:
    counts = [counted(project, job_id, steps) for job_id in ids]
    print(f"\n{counts}")
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize(
    "task", ["walk", pytest.param("walk_in_a_coroutine", marks=pytest.mark.thorough)]
)
def test_each_step_is_taken_once_whatever_is_killed(
    make_project: MakeProject, where: dict[str, str], task: str
) -> None:
    project = make_project(settings_of(), **where)
    steps = int(100 * SCALE)
    calls = [[steps, PAUSE, dies] for dies in (True, False, True, False)]
    ids = project.enqueue(f"steps:{task}", *calls)
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=3, pause=0.7)
    troubles.make_until_done(120)
    stop_all(project)
    counts = walked(project, ids, steps)
    # Both that were to die between the end of a step and its storing have done so.
    assert counts[0].repeated >= 1
    assert counts[2].repeated >= 1
    assert sum(count.attempts for count in counts) > len(ids) + 2


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_in_task_processes_too(make_project: MakeProject, where: dict[str, str]) -> None:
    project = make_project(settings_of(processes=1, executor="processes"), **where)
    steps = int(100 * SCALE)
    tasks = ("walk", "walk_in_a_coroutine")
    ids = [project.enqueue(f"steps:{task}", [steps, PAUSE, True])[0] for task in tasks]
    [worker] = project.start().wait_ready(1)
    chance = random.Random(5)
    while project.unfinished():
        if children := task_processes(worker):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(children).pid, signal.SIGKILL)
        time.sleep(0.4)
    stop_all(project)
    counts = walked(project, ids, steps)
    assert all(count.repeated >= 1 and count.attempts > 2 for count in counts)


@pytest.mark.thorough
def test_steps_that_are_not_stored_would_be_noticed(make_project: MakeProject) -> None:
    project = make_project(settings_of(processes=1))
    project.mutant = "no memory of steps"
    ids = project.enqueue("steps:walk", [10, 0.0, True])
    project.start().wait_ready(1)
    project.wait_done(30)
    stop_all(project)
    with pytest.raises(AssertionError):
        walked(project, ids, 10)


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_with_the_writes_of_its_transaction_each_step_takes_effect_once(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(), **where)
    steps = int(60 * SCALE)
    ids = project.enqueue("steps:insert_each", *[[steps, 0.01]] * 3)
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=4, pause=0.7)
    troubles.make_until_done(120)
    stop_all(project)
    written = Counter(text for (text,) in project.query("SELECT text FROM faultapp_note"))
    assert written == Counter(f"{job_id} {step}" for job_id in ids for step in range(steps))
    assert troubles.killed >= 1


# --- sleeps


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_a_thousand_jobs_sleep_without_a_thread(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    """On one worker with one thread: meanwhile it runs another job."""
    project = make_project(settings_of(processes=1, threads=1), **where)
    jobs = int(1000 * SCALE)
    ids = project.enqueue("steps:doze", *[[3 * 3600]] * jobs)
    project.start().wait_ready(1)
    wait_for(lambda: project.count("scheduled_executions") == jobs, 120, "that all of them sleep")
    assert (project.count("claimed_executions"), project.count("ready_executions")) == (0, 0)
    project.enqueue("steps:hurry")
    wait_for(lambda: project.unfinished() == jobs, 20, "the end of another job")
    events = Counter(event for job_id in ids for event, *_ in steps_of(project)[job_id])
    assert events == {"before": jobs}
    assert project.client.call("let_time_pass", hours=3) == jobs
    project.wait_done(120)
    stop_all(project)
    attempts = Counter(attempt.job_id for attempt in project.attempts())
    assert attempts == dict.fromkeys(ids, 2)
    trace = steps_of(project)
    for job_id in ids:
        assert [event for event, *_ in trace[job_id]] == ["before", "after"]
    tried = project.query("SELECT attempts, count(*) FROM steady_queue_jobs GROUP BY attempts")
    assert tried == [(1, jobs + 1)]
    assert project.count("steps") == 3 * jobs


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_sleep_passes_a_task_process(make_project: MakeProject, executor: str) -> None:
    project = make_project(settings_of(processes=1, executor=executor))
    project.start().wait_ready(1)
    [job] = project.enqueue("steps:doze", [0.5])
    project.wait_done(30)
    stop_all(project)
    first, second = project.attempts_at(job)
    assert second.started_at - first.started_at >= 0.5e9
    assert [event for event, *_ in steps_of(project)[job]] == ["before", "after"]


# --- a lost claim


def resume_a_worker_whose_job_runs_elsewhere(project: Project) -> int:
    """Stop a worker past its lease in the middle of a task; return the job."""
    supervisor = project.start()
    supervisor.wait_ready(2)
    [job] = project.enqueue("steps:step_beside_the_next")
    stopped = project.wait_started(job).pid
    wait_for(lambda: any(e == "held" for e, *_ in steps_of(project)[job]), 20, "its steps")
    freeze_outside_of_statements(project, stopped)
    wait_pruned(project, stopped)
    assert project.wait_started(job, times=2).pid != stopped
    thaw(supervisor, stopped)
    project.wait_done(40)
    wait_for(lambda: all(each.ended_at for each in project.attempts_at(job)), 20, "both ends")
    wait_gone([stopped], 20)
    stop_all(project)
    return job


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_worker_that_resumes_after_its_lease_stores_no_step(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(**SHORT_LEASE), extra=SPARING, **where)
    job = resume_a_worker_whose_job_runs_elsewhere(project)
    events = Counter(event for event, *_ in steps_of(project)[job])
    assert events == {"held": 1, "preempted": 1}
    rows = project.query("SELECT name FROM steady_queue_steps ORDER BY position")
    assert rows == [("first",), ("who",)]
    said = project.supervisors[0].errors()
    assert f"Task id={job} path=tests.faultapp.steps.step_beside_the_next stops" in said
    assert "Traceback" not in said


@pytest.mark.thorough
def test_without_the_fence_it_would_store_one(make_project: MakeProject) -> None:
    project = make_project(settings_of(**SHORT_LEASE), extra=SPARING)
    project.mutant = "no fence around steps"
    job = resume_a_worker_whose_job_runs_elsewhere(project)
    events = Counter(event for event, *_ in steps_of(project)[job])
    assert events == {"held": 1, "stored": 1}
