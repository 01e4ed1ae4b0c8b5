"""Functions and coroutines beside each other: neither waits for room that only the other lacks."""

from __future__ import annotations

import time
from itertools import accumulate

import pytest

from steady_queue_core.processes.worker.prefetch import Prefetch, Throughput

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for


def worker(threads: int, coroutines: int) -> dict[str, object]:
    return queue() | {
        "workers": [{"threads": threads, "coroutines": coroutines, "polling_interval": 0.05}]
    }


def most_at_once(project: Project) -> int:
    """Return how many attempts overlapped, by the effect log."""
    moments = [(attempt.started_at, 1) for attempt in project.attempts()]
    moments += [(attempt.ended_at, -1) for attempt in project.attempts() if attempt.ended_at]
    return max(accumulate(step for _, step in sorted(moments)))


def test_no_more_coroutines_run_at_once_than_the_worker_may(make_project: MakeProject) -> None:
    project = make_project(worker(threads=3, coroutines=2))
    project.enqueue("awork", *[[0.2]] * 12)
    project.enqueue("awork", *[[0.005]] * 200)
    project.start().wait_ready(1)
    project.wait_done(30)
    stop_all(project)
    assert most_at_once(project) == 2


@pytest.mark.parametrize(
    ("long", "short"),
    [
        pytest.param("work", "awork", id="functions-fill-the-threads"),
        pytest.param("awork", "work", id="coroutines-fill-the-loop"),
    ],
)
def test_one_kind_runs_while_the_other_fills_its_place(
    long: str, short: str, make_project: MakeProject
) -> None:
    project = make_project(worker(threads=2, coroutines=2) | {"shutdown_timeout": 0.1})
    project.start().wait_ready(1)
    for job in project.enqueue(long, [60.0], [60.0]):
        project.wait_started(job)
    [quick] = project.enqueue(short, [0.0])
    project.wait_started(quick, seconds=5)
    wait_for(lambda: project.state_of(quick) == "finished", 5, "the end of the quick one")
    stop_all(project)


def test_a_worker_asks_for_one_job_where_only_one_kind_could_start() -> None:
    prefetch = Prefetch(3, 5, 0, mixed=True)
    assert prefetch.limit(0, 0) == 3
    assert prefetch.limit(3, 0) == 1
    assert prefetch.limit(0, 5) == 1
    assert prefetch.limit(3, 5) == 0
    assert prefetch.limit(4, 0) == 0, "one waits in vain already"
    assert Prefetch(3, 5, 0, mixed=False).limit(3, 0) == 0


def test_it_asks_ever_more_rarely_while_that_is_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    prefetch = Prefetch(3, 5, 0, mixed=True)
    pauses = []
    for _ in range(6):
        prefetch.observe_stall(prefetch.threads)
        began = now
        while not prefetch.limit(3, 0):
            now += 0.125
        pauses.append(now - began)
    assert pauses == [0.5, 1, 2, 4, 8, 8]
    prefetch.observe_ends(prefetch.threads, 0.001)
    prefetch.observe_stall(prefetch.threads)
    now += 0.5
    assert prefetch.limit(3, 0) == 1


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_of_short_tasks_it_asks_for_as_many_as_will_soon_find_room(kind: str) -> None:
    prefetch = Prefetch(10, 10, 30, mixed=False)
    prefetch.observe_kinds(int(kind == "coroutines"), 1)
    throughput: Throughput = getattr(prefetch, kind)
    assert throughput.prefetch == 0
    for _ in range(100):
        prefetch.observe_ends(throughput, 0.01)
    # Each of the ten has room for one in 12.5 ms, and for a quarter of another.
    assert throughput.prefetch == 12
    for _ in range(100):
        prefetch.observe_ends(throughput, 0.0)
    assert throughput.prefetch == 30
    before = prefetch.limit(0, 0)
    prefetch.observe_stall(throughput)
    assert throughput.prefetch == 0
    assert prefetch.limit(0, 0) < before


def test_a_coroutine_that_is_kept_waiting_by_others_takes_that_long(
    make_project: MakeProject,
) -> None:
    """Jobs that keep the loop busy are slow, however many of them have room on it."""
    project = make_project(worker(threads=1, coroutines=50))
    project.enqueue("block_loop", *[[0.02]] * 150)
    project.start().wait_ready(1)
    most = 0
    while project.unfinished():
        most = max(most, project.count("claimed_executions"))
        time.sleep(0.02)
    stop_all(project)
    assert most < 80


def test_what_has_returned_does_not_wait_for_the_queries_of_others(
    make_project: MakeProject,
) -> None:
    project = make_project(
        worker(threads=1, coroutines=4)
        | {"shutdown_timeout": 0.1, "task_modules": ["tests.faultapp.rude"]}
    )
    project.start().wait_ready(1)
    [slow] = project.enqueue("rude:occupy_queries", [60.0])
    project.wait_started(slow)
    jobs = project.enqueue("awork", *[[0.0]] * 10)
    for job in jobs:
        wait_for(lambda job=job: project.state_of(job) == "finished", 5, "the end of a job")
    stop_all(project)
