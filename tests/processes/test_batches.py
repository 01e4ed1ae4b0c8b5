"""Batches end once, with their last job, whatever is killed: real processes."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from .conftest import EACH_SERVER, EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import nothing_to_repair, queue, stop_all, swept
from .storage import ServerDatabase
from .test_delivery import Troubles
from .waiting import wait_for

MODULE = ["tests.faultapp.batches"]
BATCHES = int(40 * SCALE)


def settings_of(processes: int = 2, executor: str = "threads") -> dict[str, Any]:
    settings = swept(queue(processes=processes, threads=3, task_modules=MODULE))
    settings["workers"][0]["executor"] = executor
    return settings


def callbacks_of(project: Project) -> dict[int, list[str]]:
    """Return the names of the callbacks of each batch."""
    rows = project.query(
        "SELECT arguments, metadata FROM steady_queue_jobs WHERE task_path = ? ORDER BY id",
        "tests.faultapp.batches.told",
    )
    found: dict[int, list[str]] = {}
    for arguments, metadata in rows:
        [name] = json.loads(arguments)["args"]
        batch_id = next(iter(json.loads(metadata)["batch"].values()))[0]
        found.setdefault(batch_id, []).append(name)
    return found


def check(project: Project, ids: list[int]) -> Counter[str]:
    """Compare the batches with their jobs, from outside; return how many ended how."""
    rows = project.query("SELECT id, finished_at, total, failed FROM steady_queue_batches")
    assert {pk for pk, *_ in rows} == set(ids)
    callbacks, ended = callbacks_of(project), Counter[str]()
    members = project.query("SELECT batch_id, job_id, state FROM steady_queue_batch_members")
    failures = {pk for (pk,) in project.query("SELECT job_id FROM steady_queue_failed_executions")}
    for pk, finished_at, total, failed in rows:
        own = [(job_id, state) for batch_id, job_id, state in members if batch_id == pk]
        assert finished_at is not None
        assert total == len(own)
        assert failed == sum(state != 1 for _, state in own)
        jobs = [(job_id, state) for job_id, state in own if job_id is not None]
        assert all((state == 1) is (job_id not in failures) for job_id, state in jobs)
        last = project.query(
            "SELECT max(j.finished_at) FROM steady_queue_jobs j JOIN steady_queue_batch_members m "
            "ON m.job_id = j.id WHERE m.batch_id = ?",
            pk,
        )[0][0]
        assert last <= finished_at
        assert callbacks[pk] == (["failure", "finish"] if failed else ["success", "finish"])
        ended["failed" if failed else "succeeded"] += 1
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize(
    "executor", ["threads", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_batches_end_once_under_kills(
    make_project: MakeProject, where: dict[str, str], executor: str
) -> None:
    project = make_project(settings_of(executor=executor), **where)
    ids: list[int] = []

    def more() -> None:
        for number in range(BATCHES):
            ids.extend(project.client.call("make_batches", seconds=0.1, number=number))

    more()
    supervisor = project.start()
    supervisor.wait_ready(2)
    troubles = Troubles(project, supervisor, seed=13, pause=0.5)
    troubles.make_until_done(150, kills=3, more=more)
    stop_all(project)
    ended = check(project, ids)
    nothing_to_repair(project)
    assert ended["failed"] == len(ids) // BATCHES * len(range(0, BATCHES, 3))
    assert troubles.killed >= 3
    print(f"\n{troubles.killed} kills, {dict(ended)}")


@pytest.mark.parametrize("alias", EACH_SERVER)
def test_a_batch_that_is_kept_locked_holds_up_no_other_job(
    alias: str, make_project: MakeProject
) -> None:
    """As by whoever adds jobs to it in a request that takes long."""
    project = make_project(settings_of(processes=1), on=alias)
    project.start().wait_ready(1)
    assert isinstance(project.storage, ServerDatabase)
    project.client.call("make_batches", seconds=1.0, number=1)
    project.client.call("make_batches", seconds=1.0, number=2)
    wait_for(lambda: len(project.attempts()) >= 3, 20, "the start of three members")
    with project.storage.locked("SELECT 1 FROM steady_queue_batches FOR UPDATE"):
        for _ in range(2):
            ids = project.enqueue("work", *[[0.0]] * 20)
            wait_for(
                lambda ids=ids: {project.state_of(job) for job in ids} == {"finished"},
                10,
                "the end of all others",
            )
        assert project.query("SELECT id FROM steady_queue_batches WHERE finished_at IS NULL")
    project.wait_done(30)
    stop_all(project)
    assert not project.query("SELECT id FROM steady_queue_batches WHERE finished_at IS NULL")
