"""What thousands of jobs leave in their worker: nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steady_queue_core.processes.worker.error_frames import MOST_KEPT

from ..sizes import sized
from . import proc
from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for

#: Kinds of jobs, each with its arguments. Some fail, and some leave things behind.
KINDS: list[tuple[str, list[Any]]] = [
    ("work", [0.0]),
    ("awork", [0.0]),
    ("await_thread", [0.0]),
    ("flaky", [9]),
    ("note", [0.0]),
    ("one_by_one", [0.0]),
    ("in_pairs", [0.0]),
    ("fail_at_length", [100_000]),
    ("answer", [100_000]),
    ("unique:work_once", ["key"]),
    ("callbacks:work", [0.0]),
    ("checkpoints:count", [3, 0.0]),
    ("delivery:insert", [0.0]),
    ("rude:begin", []),
    ("rude:close", []),
    ("traces:wrap_statements", []),
    ("traces:leave_transaction", []),
    ("traces:start_thread", []),
    ("traces:raise_exit", []),
]
#: What stays with its connection, unless each task gets a new one.
OF_SESSION: tuple[str, list[Any]] = ("traces:change_session", [])
TRACES = "tests.faultapp.traces"
MODULES = [
    TRACES,
    *(
        f"tests.faultapp.{name}"
        for name in ("tasks", "unique", "callbacks", "checkpoints", "delivery", "rude")
    ),
]
#: What the allocator may keep, in bytes: a small part of what the failed jobs have held.
SPARE = 48 << 20


def memory(pid: int) -> int:
    """Return the bytes of a process that are in memory."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def all_done(project: Project) -> None:
    def done() -> bool:
        [(number,)] = project.query(
            "SELECT count(*) FROM steady_queue_jobs WHERE finished_at IS NULL"
        )
        return not number

    wait_for(done, 120, "the end of all jobs")


def seen_by_tasks(project: Project) -> set[str]:
    """Return what tasks find in each thread."""
    ids = project.enqueue("traces:look", *[[]] * 20)
    all_done(project)
    found = project.query(
        f"SELECT return_value FROM steady_queue_jobs WHERE id IN ({', '.join(map(str, ids))})"
    )
    return {json.dumps(json.loads(text)) for (text,) in found}


def round_of_kinds(project: Project, kinds: list[tuple[str, list[Any]]]) -> None:
    for task, arguments in kinds:
        project.enqueue(task, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("where", EVERYWHERE)
def test_jobs_of_many_kinds_leave_nothing_in_their_worker(
    make_project: MakeProject, where: dict[str, Any], fresh: bool, pytestconfig: pytest.Config
) -> None:
    settings = queue(processes=1, threads=3, task_modules=MODULES)
    settings["workers"][0]["fresh_connections"] = fresh
    project, kinds = make_project(settings, **where), [*KINDS, *[OF_SESSION] * fresh]
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    round_of_kinds(project, kinds)
    # The pool of the loop has as many threads as calls have ever been in them at once.
    project.enqueue("await_thread", *[[0.1]] * 40)
    before = seen_by_tasks(project)
    threads, files = proc.threads(worker), len(proc.open_files(worker))
    for _ in range(sized(pytestconfig, merge=5, whole=100)):
        round_of_kinds(project, kinds)
    assert seen_by_tasks(project) == before
    assert supervisor.workers() == [worker]
    wait_for(lambda: proc.threads(worker) <= threads, 10, "the end of threads")
    assert len(proc.open_files(worker)) <= files + 2
    stop_all(project)


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["fail_and_hold", pytest.param("afail_and_hold", marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize(
    "executor", ["threads", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_what_failed_jobs_hold_does_not_wait_for_slow_receivers(
    make_project: MakeProject, executor: str, task: str
) -> None:
    settings = queue(processes=1, threads=2, task_modules=[TRACES])
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    project.start().wait_ready(1)
    project.enqueue("traces:listen_slowly", [])
    project.enqueue(f"traces:{task}", *[[]] * 200)
    all_done(project)
    ids = project.enqueue("traces:most_held", *[[]] * 4)
    all_done(project)
    most = project.query(
        f"SELECT return_value FROM steady_queue_jobs WHERE id IN ({', '.join(map(str, ids))})"
    )
    assert max(int(text) for (text,) in most) <= MOST_KEPT + 10  # And those that run.
    stop_all(project)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("task", ["fail_with_much", "afail_with_much"])
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_what_failed_jobs_have_held_is_freed(
    make_project: MakeProject, executor: str, task: str
) -> None:
    settings = queue(processes=1, threads=2, task_modules=[TRACES])
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    supervisor = project.start()
    supervisor.wait_ready(1)
    project.enqueue(f"traces:{task}", *([number] for number in range(500)))
    all_done(project)
    family = [each.pid for each in proc.in_session(supervisor.pid)]
    before = {pid: memory(pid) for pid in family}
    project.enqueue(f"traces:{task}", *([number] for number in range(9_500)))
    all_done(project)
    grown = {pid: memory(pid) - before[pid] for pid in family}
    assert max(grown.values()) < SPARE
    assert [each.pid for each in proc.in_session(supervisor.pid)] == family
    stop_all(project)
