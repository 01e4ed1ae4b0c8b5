"""Chains, groups and workflows in real processes: nothing runs too early, and nothing is left."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import nothing_to_repair, queue, stop_all, swept
from .test_delivery import Troubles

MODULE = ["tests.faultapp.workflows"]
#: ``make soak`` has 200 graphs of 50 nodes, and kills a worker each second.
GRAPHS, SIZE = round(8 * SCALE**2), round(10 * SCALE)
SECONDS, PAUSE = 0.1 / SCALE, min(1.0, 0.4 * SCALE)
SUCCEEDED, FAILED = 1, 2
SUCCESS, FAILURE = 0, 1


def settings_of() -> dict[str, Any]:
    return swept(queue(processes=2, threads=3, task_modules=MODULE))


def members_of(project: Project, batch_id: int) -> list[tuple[Any, ...]]:
    """Return the names, states and return values of the jobs of a batch, in order."""
    rows = project.query(
        "SELECT m.name, m.state, j.return_value FROM steady_queue_batch_members m "
        "LEFT JOIN steady_queue_jobs j ON j.id = m.job_id WHERE m.batch_id = ? ORDER BY m.id",
        batch_id,
    )
    return [(name, state, value and json.loads(value)) for name, state, value in rows]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_graphs_run_in_a_supervisor(make_project: MakeProject, where: dict[str, str]) -> None:
    project = make_project(settings_of(), **where)
    chained, collected, workflow = project.client.call("make_examples")
    supervisor = project.start()
    supervisor.wait_ready(2)
    project.wait_done(60)
    stop_all(project)
    assert [value for *_, value in members_of(project, chained)] == [1, 1, 10]
    assert members_of(project, collected)[1] == ("", SUCCEEDED, 11)
    assert members_of(project, workflow) == [
        ("1", SUCCEEDED, 1), ("2", FAILED, None), ("3", 3, None), ("4", SUCCEEDED, 4),
        ("5", SUCCEEDED, 5), ("grown 1", SUCCEEDED, 1),
    ]  # fmt: skip


def check(project: Project) -> Counter[int]:
    """Compare what ran with what each job has waited for; return how many members ended how."""
    started: dict[int, int] = {}
    last: dict[int, int] = {}
    starts = Counter[int]()
    for attempt in project.attempts():  # In the order of their starts.
        started.setdefault(attempt.job_id, attempt.started_at)
        end = attempt.ended_at or attempt.started_at
        last[attempt.job_id] = max(end, last.get(attempt.job_id, 0))
        starts[attempt.job_id] += 1
    attempts = {}
    for job_id, most, counted in project.query(
        "SELECT id, max_attempts, attempts FROM steady_queue_jobs"
    ):
        assert starts[job_id] <= abs(most), (job_id, starts[job_id])
        attempts[job_id] = counted
    rows = project.query("SELECT id, batch_id, job_id, state FROM steady_queue_batch_members")
    states = {pk: state for pk, _, _, state in rows}
    job_of = {pk: job_id for pk, _, job_id, _ in rows}
    nested = dict(project.query("SELECT member_id, id FROM steady_queue_batches"))
    inside = defaultdict(list)
    for pk, batch_id, _, _ in rows:
        inside[batch_id].append(pk)

    def jobs_in(member: int) -> list[int]:
        if job_of[member] is not None:
            return [job_of[member]]
        return [job for inner in inside[nested[member]] for job in jobs_in(inner)]

    assert 0 not in states.values()
    assert project.query("SELECT count(*) FROM steady_queue_waiting_executions") == [(0,)]
    assert project.query("SELECT count(*) FROM steady_queue_dependencies WHERE state = 0") == [(0,)]
    waits = project.query("SELECT job_id, parent_id, run_when FROM steady_queue_dependencies")
    unmet = set()
    for job_id, parent, run_when in waits:
        state = states[parent]
        is_met = run_when not in (SUCCESS, FAILURE) or state in (
            (SUCCEEDED,) if run_when == SUCCESS else (FAILED, 3)
        )
        if not is_met:
            unmet.add(job_id)
        if job_id in started:
            for before in jobs_in(parent):
                assert last.get(before, 0) <= started[job_id], (job_id, before)
    for pk, _, job_id, state in rows:
        if job_id is not None:
            # An attempt may be killed before the task has said that it started.
            has_failed = state == FAILED and attempts[job_id] > 0
            has_started = job_id in started or has_failed
            parents = [(run_when, states[parent], parent) for job, parent, run_when in waits
                       if job == job_id]  # fmt: skip
            told = pk, job_id, state, attempts[job_id], parents
            assert has_started is (job_id not in unmet), told
    open_batches = "SELECT count(*) FROM steady_queue_batches WHERE finished_at IS NULL"
    assert project.query(open_batches) == [(0,)]
    return Counter(states.values())


def check_callbacks(project: Project, ids: list[int]) -> None:
    """Compare the rows that callbacks have written with the ends of the batches."""
    failed = dict(project.query("SELECT id, failed FROM steady_queue_batches"))
    expected = Counter(
        f"{pk} {name}" for pk in ids for name in ("failure" if failed[pk] else "success", "finish")
    )
    assert Counter(text for (text,) in project.query("SELECT text FROM faultapp_note")) == expected


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_random_graphs_keep_their_order_under_kills(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(settings_of(), **where)
    ids: list[int] = []

    def more() -> None:
        for seed in range(len(ids), len(ids) + GRAPHS):
            ids.append(project.client.call("make_random", seed=seed, size=SIZE, seconds=SECONDS))

    more()
    supervisors = [project.start() for _ in range(3)]
    for supervisor in supervisors:
        supervisor.wait_ready(2)
    troubles = Troubles(project, *supervisors, seed=7, pause=PAUSE)
    troubles.make_until_done(120 + GRAPHS * SIZE / 10, kills=3, more=more)
    stop_all(project)
    states = check(project)
    check_callbacks(project, ids)
    nothing_to_repair(project)
    assert troubles.killed >= 3
    again = sum(times > 1 for times in Counter(a.job_id for a in project.attempts()).values())
    print(
        f"\n{len(ids)} workflows, {sum(states.values())} members, {troubles.killed} kills, "
        f"{again} jobs started again, ends: {dict(sorted(states.items()))}"
    )
