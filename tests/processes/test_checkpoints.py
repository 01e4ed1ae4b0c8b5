"""Checkpoints and progress under kills and stops: real processes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import SHORT_LEASE, SPARING, queue, stop_all, thaw, wait_gone, wait_pruned
from .storage import ServerDatabase
from .test_delivery import Troubles
from .test_task_processes import task_processes
from .waiting import wait_for

MODULE = ["tests.faultapp.checkpoints"]

#: Seconds that a step takes.
PAUSE = 0.02


def settings_of(processes: int = 2, executor: str = "threads", **options: Any) -> dict[str, Any]:
    settings = queue(processes=processes, threads=2, task_modules=MODULE, **options)
    settings["workers"][0]["executor"] = executor
    return settings


def steps_of(project: Project) -> dict[int, list[tuple[str, int, int]]]:
    """Return what the attempts of each job have noted: the event, the token, and the step."""
    found: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    path = project.effect_log.with_name(project.effect_log.name + ".steps")
    for line in path.read_text().splitlines() if path.exists() else []:
        event, *numbers = line.split()
        job_id, token, step = map(int, numbers)
        found[job_id].append((event, token, step))
    return found


def row_of(project: Project, job_id: int) -> tuple[Any, ...] | None:
    rows = project.query(
        "SELECT token, data, done, total, text FROM steady_queue_checkpoints WHERE job_id = ?",
        job_id,
    )
    return rows[0] if rows else None


def resumed(project: Project) -> bool:
    """Tell whether a job has gone on in a later attempt."""
    tokens = [{token for _, token, _ in told} for told in steps_of(project).values()]
    return any(len(each) > 1 for each in tokens)


def resumed_where_it_ended(project: Project, job_id: int, steps: int) -> int:
    """Check that each attempt went on where the one before had come; return their number."""
    done: dict[int, list[int]] = {}
    for event, token, step in steps_of(project)[job_id]:
        if event == "resume":
            done[token] = [step]
        else:
            done[token].append(step)
    attempts = [done[token] for token in sorted(done)]
    assert attempts[0][0] == 0
    assert attempts[-1][-1] == steps - 1
    for earlier, later in pairwise(attempts):
        # A step whose checkpoint was not stored before the kill is done again, and no other.
        last = earlier[-1] if len(earlier) > 1 else earlier[0]
        assert later[0] in (last, last + 1)
        assert later[1:2] in ([], [later[0]])
    return len(attempts)


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize(
    "task", ["count", pytest.param("count_in_a_coroutine", marks=pytest.mark.thorough)]
)
def test_each_attempt_resumes_where_the_one_before_was_killed(
    make_project: MakeProject, where: dict[str, str], task: str
) -> None:
    project = make_project(settings_of(), **where)
    steps = int(150 * SCALE)
    ids: list[int] = []

    def more() -> None:
        ids.extend(project.enqueue(f"checkpoints:{task}", *[[steps, PAUSE]] * 4))

    more()
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=3, pause=0.7)
    troubles.make_until_done(120, kills=2, more=more)
    while not resumed(project):  # The kills have met workers that were at no job.
        more()
        troubles.make_until_done(120)
    stop_all(project)
    attempts = [resumed_where_it_ended(project, job_id, steps) for job_id in ids]
    assert troubles.killed >= 2
    assert sum(attempts) > len(ids)
    for job_id in ids:
        # The data are of no use any more; the progress is shown.
        row = row_of(project, job_id)
        assert row is not None
        assert (row[1], row[3]) == (None, steps)
        # A worker that is killed after the end of a task may lose what was told in the last second.
        assert steps - 1 / PAUSE <= row[2] <= steps
    print(f"\n{troubles.killed} kills, {attempts} attempts")


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_in_task_processes_too(make_project: MakeProject, where: dict[str, str]) -> None:
    project = make_project(settings_of(processes=1, executor="processes"), **where)
    steps = int(100 * SCALE)
    tasks = ("count", "count_in_a_coroutine")
    ids = [project.enqueue(f"checkpoints:{task}", [steps, PAUSE])[0] for task in tasks]
    [worker] = project.start().wait_ready(1)
    chance, killed = random.Random(5), 0
    while project.unfinished():
        if children := task_processes(worker):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(children).pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.4)
    stop_all(project)
    attempts = [resumed_where_it_ended(project, job_id, steps) for job_id in ids]
    assert sum(attempts) > len(ids)
    assert killed
    for job_id in ids:
        row = row_of(project, job_id)
        assert row is not None
        assert row[1] is None
        assert steps - 1 / PAUSE <= row[2] <= steps


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_with_the_writes_of_its_transaction_each_step_is_done_once(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(), **where)
    steps = int(60 * SCALE)
    ids: list[int] = []

    def more() -> None:
        ids.extend(project.enqueue("checkpoints:insert_each", *[[steps, 0.01]] * 3))

    more()
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=4, pause=0.7)
    troubles.make_until_done(120, kills=1, more=more)
    stop_all(project)
    written = Counter(text for (text,) in project.query("SELECT text FROM faultapp_note"))
    assert written == Counter(f"{job_id} {step}" for job_id in ids for step in range(steps))
    assert troubles.killed >= 1


def resume_a_worker_whose_job_runs_elsewhere(project: Project) -> int:
    """Stop a worker past its lease in the middle of a task; return the job."""
    supervisor = project.start()
    supervisor.wait_ready(2)
    [job] = project.enqueue("checkpoints:wait_for_the_next")
    stopped = project.wait_started(job).pid
    wait_for(lambda: any(e == "held" for e, *_ in steps_of(project)[job]), 20, "its checkpoint")
    freeze_outside_of_statements(project, stopped)
    wait_pruned(project, stopped)
    assert project.wait_started(job, times=2).pid != stopped
    thaw(supervisor, stopped)
    project.wait_done(40)
    wait_for(lambda: all(each.ended_at for each in project.attempts_at(job)), 20, "both ends")
    wait_gone([stopped], 20)
    stop_all(project)
    return job


def freeze_outside_of_statements(project: Project, pid: int) -> None:
    from .scenarios import freeze

    supervisor = project.supervisors[0]
    if not isinstance(project.storage, ServerDatabase):
        freeze(project, supervisor, pid)
        return
    asked = OPEN[project.storage.address.scheme]
    for _ in range(40):
        supervisor.send(signal.SIGSTOP, pid)
        try:
            # Whoever is stopped within one keeps its locks, for which the rescue would wait.
            wait_for(lambda: project.query(asked) == [(0,)], 0.5)
            return
        except AssertionError:
            thaw(supervisor, pid)
    raise AssertionError(f"{pid} was always within a statement")


#: How many transactions of the project are open.
OPEN = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND xact_start IS NOT NULL",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx "
    "JOIN information_schema.processlist ON id = trx_mysql_thread_id WHERE db = database()",
}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_worker_that_resumes_after_its_lease_stores_nothing(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(**SHORT_LEASE), extra=SPARING, **where)
    job = resume_a_worker_whose_job_runs_elsewhere(project)
    events = Counter(event for event, *_ in steps_of(project)[job])
    assert events["preempted-checkpoint"] == events["preempted-progress"] == 1
    assert not events["stored-checkpoint"] + events["stored-progress"]
    held = [step for event, _, step in steps_of(project)[job] if event == "held"]
    assert held == [1, 0]
    first, second = sorted({token for _, token, _ in steps_of(project)[job]})
    token, data, done, *_ = row_of(project, job) or ()
    assert (token, data, done) == (second, None, 2)
    assert project.snapshot().jobs[job].token == second
    assert first < second
    said = project.supervisors[0].errors()
    assert f"Task id={job} path=tests.faultapp.checkpoints.wait_for_the_next stops" in said
    # It is no error, and no warning either.
    lines = [line for line in said.splitlines() if "The claim of job" in line]
    assert all(" INFO " in line for line in lines)
    assert "Traceback" not in said


@pytest.mark.thorough
def test_without_the_fence_it_would_store_both(make_project: MakeProject) -> None:
    project = make_project(settings_of(**SHORT_LEASE), extra=SPARING)
    project.mutant = "no fence around checkpoints"
    job = resume_a_worker_whose_job_runs_elsewhere(project)
    events = Counter(event for event, *_ in steps_of(project)[job])
    assert events["stored-checkpoint"] == events["stored-progress"] == 1


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_the_last_progress_of_a_job_is_shown(make_project: MakeProject, executor: str) -> None:
    project = make_project(settings_of(processes=1, executor=executor))
    project.start().wait_ready(1)
    ids = [
        project.enqueue(f"checkpoints:{task}", [7, 0.0])[0]
        for task in ("count", "count_in_a_coroutine")
    ]
    project.wait_done(30)
    stop_all(project)
    for job_id in ids:
        assert (row_of(project, job_id) or ())[1:] == (None, 7, 7, "step 6")


def test_a_worker_that_stops_gives_its_job_to_one_that_resumes(make_project: MakeProject) -> None:
    project = make_project(settings_of(processes=1, shutdown_timeout=0.1))
    [job] = project.enqueue("checkpoints:count", [100, 0.02])
    first = project.start()
    first.wait_ready(1)
    wait_for(lambda: len(steps_of(project)[job]) > 10, 20, "some steps")
    assert first.stop() == 0
    project.start().wait_ready(1)
    project.wait_done(30)
    stop_all(project)
    assert resumed_where_it_ended(project, job, 100) == 2
