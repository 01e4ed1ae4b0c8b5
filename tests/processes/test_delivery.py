"""Deliveries under kills, cuts and stops: real processes, on every database."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import pairwise
from typing import Any

import pytest

from ..servers import client
from .conftest import EVERYWHERE, MODES, MakeProject
from .harness import SCALE, Project, Supervisor
from .scenarios import (
    SHORT_LEASE,
    SPARING,
    durations,
    one_state_each,
    queue,
    stop_all,
    thaw,
    verdict,
    wait_gone,
    wait_pruned,
)
from .storage import ServerDatabase
from .test_task_processes import task_processes
from .waiting import wait_for

MODULE = ["tests.faultapp.delivery"]
SERVERS = EVERYWHERE[1:]


def delivering(processes: int = 2, threads: int = 2, **options: Any) -> dict[str, Any]:
    return queue(processes=processes, threads=threads, task_modules=MODULE, **options)


def rows_of(project: Project) -> Counter[int]:
    """Return how many rows the tasks of each job have left."""
    return Counter(int(text) for (text,) in project.query("SELECT text FROM faultapp_note"))


def starts_of(project: Project) -> Counter[int]:
    return Counter(attempt.job_id for attempt in project.attempts())


def failure_of(project: Project, job_id: int) -> tuple[str, str]:
    [(path, message)] = project.query(
        "SELECT exception_class, message FROM steady_queue_failed_executions WHERE job_id = ?",
        job_id,
    )
    return path.rpartition(".")[2], message


class Troubles:
    """What a test does to a project: a worker killed each second, and, every other second, all
    sessions of its database ended by the server."""

    def __init__(self, project: Project, *supervisors: Supervisor, seed: int, pause: float) -> None:
        self.project, self.supervisors, self.pause = project, supervisors, pause
        self.chance = random.Random(seed)
        self.killed = self.cut = 0

    def make_until_done(
        self,
        seconds: float,
        *,
        cuts: bool = False,
        kills: int = 0,
        more: Callable[[], Any] | None = None,
    ) -> None:
        """Go on until all jobs have ended. On a slow machine they may have before there were so
        many ``kills``: then ``more`` makes others."""
        project, deadline, number = self.project, time.monotonic() + seconds, 0
        while project.unfinished() or (more is not None and self.killed < kills):
            if more is not None and not project.unfinished():
                more()
            next_one, number = time.monotonic() + self.pause, number + 1
            one_state_each(project)
            self._kill()
            if cuts and number % 2 and isinstance(project.storage, ServerDatabase):
                self._cut(project.storage)
            while time.monotonic() < next_one and project.unfinished():
                time.sleep(0.05)
            assert time.monotonic() < deadline, project.logs()

    def _kill(self) -> None:
        supervisor = self.chance.choice(self.supervisors)
        if workers := supervisor.workers():
            kill = supervisor.send(signal.SIGKILL, self.chance.choice(workers))
            self.killed += kill is not None

    def _cut(self, storage: ServerDatabase) -> None:
        address, postgres = storage.address, storage.address.scheme == "postgresql"
        sessions = (
            "SELECT pid FROM pg_stat_activity WHERE datname = %s"
            if postgres
            else "SELECT id FROM information_schema.processlist WHERE db = %s"
        )
        with closing(client.connect(address)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sessions, (address.name,))
            for (session,) in cursor.fetchall():
                with suppress(Exception):  # It has ended by itself.
                    cursor.execute(
                        f"SELECT pg_terminate_backend({session})" if postgres else f"KILL {session}"
                    )
                    if postgres:
                        cursor.fetchall()
                    self.cut += 1


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_each_transactional_task_takes_effect_exactly_once(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    jobs = int(1000 * SCALE)
    project = make_project(delivering(), **where)
    ids: list[int] = []

    def more() -> None:
        ids.extend(project.enqueue("delivery:insert", *durations(jobs, 0.03)))

    more()
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=3, pause=1.0)
    troubles.make_until_done(120 + jobs / 10, cuts=True, kills=3, more=more)
    stop_all(project)
    snapshot = project.snapshot()
    assert {row.states for row in snapshot.jobs.values()} == {("finished",)}
    assert rows_of(project) == Counter(ids)
    # The result is that of the attempt whose row is there.
    for job_id in ids:
        assert snapshot.jobs[job_id].return_value == str(snapshot.jobs[job_id].token)
    assert troubles.killed >= 3
    assert bool(troubles.cut) is (project.storage is not project.file)
    again = sum(times > 1 for times in starts_of(project).values())
    print(
        f"\n{jobs} jobs, {troubles.killed} kills, {troubles.cut} sessions ended, {again} jobs "
        "started again"
    )


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_task_processes_deliver_transactionally_too(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    settings = delivering(processes=1, threads=2)
    settings["workers"][0]["executor"] = "processes"
    project = make_project(settings, **where)
    ids = project.enqueue("delivery:insert", *durations(int(150 * SCALE), 0.03))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    chance, killed = random.Random(5), 0
    while project.unfinished():
        if children := task_processes(worker):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(children).pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.3)
    stop_all(project)
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert rows_of(project) == Counter(ids)
    assert killed


def resume_a_worker_whose_task_runs_elsewhere(project: Project) -> int:
    """Stop a worker past its lease in the middle of a transactional task; return the job."""
    supervisor = project.start()
    supervisor.wait_ready(2)
    [job] = project.enqueue("delivery:insert", [1.2])
    stopped = project.wait_started(job).pid
    # Its session is ended while it is stopped: then it could not write the row.
    wait_for(lambda: "written" in project.effect_log.read_text(), 20, "the row")
    supervisor.send(signal.SIGSTOP, stopped)
    wait_pruned(project, stopped)
    second = project.wait_started(job, times=2)
    assert second.pid != stopped
    thaw(supervisor, stopped)
    project.wait_done(40)
    wait_for(lambda: all(each.ended_at for each in project.attempts_at(job)), 20, "both ends")
    wait_gone([stopped], 20)
    stop_all(project)
    return job


# On SQLite nobody else can end the claim while the task runs.
@pytest.mark.parametrize("where", SERVERS)
def test_a_worker_that_resumes_after_its_lease_commits_nothing(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(delivering(threads=1, **SHORT_LEASE), extra=SPARING, **where)
    job = resume_a_worker_whose_task_runs_elsewhere(project)
    assert rows_of(project) == {job: 1}
    assert project.state_of(job) == "finished"
    assert "its outcome, finished, is not recorded" in project.supervisors[0].errors()
    row = project.snapshot().jobs[job]
    assert row.return_value == str(row.token) == str(project.attempts_at(job)[1].token)


@pytest.mark.thorough
@pytest.mark.parametrize("where", SERVERS[:1])
def test_without_the_fence_it_would_commit(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(delivering(threads=1, **SHORT_LEASE), extra=SPARING, **where)
    project.mutant = "no fence around transactions"
    job = resume_a_worker_whose_task_runs_elsewhere(project)
    assert rows_of(project) == {job: 2}


def run_under_one_limit(project: Project) -> list[tuple[int, int]]:
    """Run transactional tasks and others, of which one may run at once; return those that did."""
    plain, inserted = [], []
    for _ in range(20):
        plain += project.enqueue("delivery:work_alone", *[[0.003]] * 3)
        inserted += project.enqueue("delivery:insert_alone", *[[0.003]] * 3)
    project.start().wait_ready(1)
    project.wait_done(60)
    stop_all(project)
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert rows_of(project) == Counter(inserted)
    assert project.count("permits") == 0
    return overlaps(project)


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_limits_hold_for_transactional_tasks(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(delivering(processes=1, threads=3), **where)
    assert run_under_one_limit(project) == []


@pytest.mark.thorough
def test_in_chains_they_would_not(make_project: MakeProject) -> None:
    project = make_project(delivering(processes=1, threads=3))
    project.mutant = "no heirs for transactions"
    assert run_under_one_limit(project) != []


def overlaps(project: Project) -> list[tuple[int, int]]:
    """Return the jobs that ran at the same time."""
    attempts = sorted(project.attempts(), key=lambda each: each.started_at)
    return [
        (earlier.job_id, later.job_id)
        for earlier, later in pairwise(attempts)
        if earlier.ended_at is None or earlier.ended_at > later.started_at
    ]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_copy_of_a_task_does_not_roll_its_transaction_back(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(delivering(processes=1, threads=1), **where)
    project.start().wait_ready(1)
    ids = project.enqueue("delivery:insert_beside_a_copy", [], [])
    project.wait_done(20)
    stop_all(project)
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert rows_of(project) == Counter(ids)


# On SQLite nobody can ask for it while the task runs.
@pytest.mark.parametrize("where", SERVERS)
def test_a_task_that_is_cancelled_leaves_nothing(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(delivering(processes=1, threads=1), **where)
    project.start().wait_ready(1)
    for _ in range(3):
        [job] = project.enqueue("delivery:insert", [60.0])
        project.wait_started(job)
        [[_, asked]] = project.client.call("cancel", ids=[job])
        assert asked
        wait_for(lambda job=job: project.state_of(job) == "failed", 5, f"the end of {job}")
        assert failure_of(project, job)[0] == "TaskCancelled"
        [after] = project.enqueue("delivery:insert", [0.0])
        wait_for(lambda after=after: project.state_of(after) == "finished", 5, f"job {after}")
        assert rows_of(project)[job] == 0
        assert rows_of(project)[after] == 1


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_stop_in_the_middle_leaves_nothing_and_costs_no_attempt(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(delivering(processes=1, threads=1, shutdown_timeout=0.5), **where)
    first = project.start()
    first.wait_ready(1)
    [job] = project.enqueue("delivery:insert", [3.0])
    project.wait_started(job)
    assert first.stop() == 0
    row = project.snapshot().jobs[job]
    assert (row.states, row.attempts, rows_of(project)) == (("ready",), 0, Counter())
    project.start().wait_ready(1)
    project.wait_done(20)
    stop_all(project)
    assert rows_of(project) == {job: 1}


@pytest.mark.parametrize("mode", MODES)
def test_a_long_task_on_sqlite_keeps_everybody_waiting_and_nobody_dies_of_it(
    make_project: MakeProject, mode: str
) -> None:
    project = make_project(delivering(threads=2, **SHORT_LEASE))
    ids = project.enqueue("delivery:insert", [6.0], *[[0.01]] * 20)
    ids += project.enqueue("work", *[[0.01]] * 20)
    supervisor = project.start("--mode", mode)
    began = time.monotonic()
    project.wait_done(60)
    took = time.monotonic() - began
    stop_all(project)
    print(f"\n{len(ids)} jobs behind a task of 6 s: {took:.1f} s in all")
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert max(starts_of(project).values()) == 1
    assert "declared dead" not in supervisor.errors()
    assert verdict(project) == []


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_kills_fail_no_job_that_is_delivered_at_least_once(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    jobs = int(300 * SCALE)
    project = make_project(delivering(threads=2), **where)
    ids = project.enqueue("delivery:work_at_least_once", *durations(jobs, 0.1))
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=7, pause=0.5)

    def more() -> None:
        ids.extend(project.enqueue("delivery:work_at_least_once", *durations(jobs, 0.1)))

    troubles.make_until_done(120, kills=3, more=more)
    stop_all(project)
    assert troubles.killed >= 3
    starts = starts_of(project)
    for job_id, row in project.snapshot().jobs.items():
        if row.states == ("failed",):
            assert failure_of(project, job_id)[0] == "TooManyCrashesError"
            assert starts[job_id] >= 5
        else:
            assert (row.states, row.attempts) == (("finished",), 1)
    assert set(starts) == set(ids)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_poison_is_stopped_and_says_whom_it_has_taken_along(
    make_project: MakeProject, executor: str
) -> None:
    settings = delivering(processes=1, threads=1)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    project.start().wait_ready(1)
    [job] = project.enqueue("delivery:poison")
    [other] = project.enqueue("delivery:work_at_least_once", [0.0])
    project.wait_done(60)
    stop_all(project)
    assert project.state_of(other) == "finished"
    error, message = failure_of(project, job)
    assert error == "TooManyCrashesError"
    attempts = project.attempts_at(job)
    assert len(attempts) == 3
    process = "task process" if executor == "processes" else "pid"
    for attempt in attempts:
        assert f"({process} {attempt.pid} on " in message
    assert project.snapshot().jobs[job].attempts == 1


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_no_job_starts_twice_that_is_to_start_once(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    """Whether workers are killed, or the whole host is lost with its journals."""
    # A claim may come after its worker was rescued, by a supervisor that is lost then, too: nobody
    # knows of that worker any more, and its claim is looked for after a lease.
    lease = {"process_heartbeat_interval": 1.0, "process_alive_threshold": 10.0}
    project = make_project(delivering(state_directory="marks", **lease), **where)
    ids = project.enqueue("delivery:work_at_most_once", *durations(int(1500 * SCALE), 0.02))
    chance, losses = random.Random(11), 0
    while project.unfinished():
        supervisor = project.start()
        supervisor.wait_ready(2)
        for _ in range(2):
            time.sleep(0.3)
            if workers := supervisor.workers():
                supervisor.send(signal.SIGKILL, chance.choice(workers))
        if losses < 4:
            losses += 1
            time.sleep(0.2)
            os.killpg(supervisor.pid, signal.SIGKILL)
            supervisor.wait_exit()
            wait_for(lambda supervisor=supervisor: not supervisor.children(), 10, "their end")
            shutil.rmtree(project.folder / "marks", ignore_errors=True)
        else:
            project.wait_done(60)
    stop_all(project)
    assert starts_of(project).most_common(1)[0][1] == 1
    states = Counter(row.states for row in project.snapshot().jobs.values())
    assert set(states) == {("finished",), ("failed",)}
    assert sum(states.values()) == len(ids)
    print(f"\n{states}")


def stop_in_the_middle(project: Project) -> int:
    """Stop a task that takes too long for that, and start again; return its job."""
    first = project.start()
    first.wait_ready(1)
    [job] = project.enqueue("delivery:work_at_most_once", [3.0])
    project.wait_started(job)
    assert first.stop() == 0
    second = project.start()
    second.wait_ready(1)
    project.wait_done(20)
    stop_all(project)
    return job


@pytest.mark.parametrize(
    "executor", ["threads", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_a_stop_does_not_repeat_a_start(make_project: MakeProject, executor: str) -> None:
    settings = delivering(processes=1, threads=1, shutdown_timeout=0.5)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    job = stop_in_the_middle(project)
    assert starts_of(project) == {job: 1}
    assert failure_of(project, job)[0] == "NotRepeatedError"
    [(errors,)] = project.query("SELECT errors FROM steady_queue_jobs WHERE id = ?", job)
    assert "which did not give it back" in json.loads(errors)[-1][1]


@pytest.mark.thorough
def test_otherwise_a_stop_would(make_project: MakeProject) -> None:
    project = make_project(delivering(processes=1, threads=1, shutdown_timeout=0.5))
    project.mutant = "no delivery in recovery"
    job = stop_in_the_middle(project)
    assert starts_of(project) == {job: 2}


def test_jobs_that_a_stopping_worker_has_not_started_are_given_back(
    make_project: MakeProject,
) -> None:
    project = make_project(delivering(processes=1, threads=1))
    ids = project.enqueue("delivery:work_at_most_once", *[[0.001]] * 60, [0.5], *[[0.001]] * 60)
    supervisor = project.start()
    supervisor.wait_ready(1)
    project.wait_started(ids[60])
    assert supervisor.stop() == 0
    assert project.count("failed_executions") == 0
    project.start().wait_ready(1)
    project.wait_done(20)
    stop_all(project)
    assert starts_of(project) == Counter(ids)
    assert verdict(project) == []
