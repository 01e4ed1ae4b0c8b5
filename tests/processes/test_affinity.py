"""Workers that are restricted to some processors."""

from __future__ import annotations

import os
from typing import Any

import pytest

from steady_queue_core.configuration import Configuration, ConfigurationError
from steady_queue_core.processes.supervisor.launch import require_means

from .conftest import MakeProject
from .scenarios import queue, refusal, stop_all

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="needs a system that knows affinity"
)


def on_processors(*numbers: int, executor: str = "threads") -> dict[str, Any]:
    found = queue(processes=1)
    found["workers"][0].update(cpu_affinity=list(numbers), executor=executor)
    return found


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_worker_and_all_that_it_starts_keep_to_their_processors(
    make_project: MakeProject, executor: str
) -> None:
    mine = os.sched_getaffinity(0)
    chosen = max(mine)
    project = make_project(on_processors(chosen, executor=executor))
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    jobs = project.enqueue("work", *[[0.05]] * 6)
    jobs += project.enqueue("awork", *[[0.05]] * 6)
    project.wait_done()
    pids = {project.attempts_at(job_id)[0].pid for job_id in jobs}
    assert (worker in pids) is (executor == "threads")
    for pid in {worker, *pids}:
        for thread in os.listdir(f"/proc/{pid}/task"):
            assert os.sched_getaffinity(int(thread)) == {chosen}
    assert os.sched_getaffinity(supervisor.pid) == mine
    others = set(supervisor.children()) - {worker}
    assert others
    assert all(os.sched_getaffinity(pid) == mine for pid in others)
    stop_all(project)


def test_processors_that_are_not_there_are_refused(make_project: MakeProject) -> None:
    there = sorted(os.sched_getaffinity(0))
    project = make_project(on_processors(there[0], 1000, 1001))
    said = refusal(project)
    listed = ", ".join(map(str, there))
    plural = "s" if len(there) > 1 else ""
    assert said.strip().endswith(
        "STEADY_QUEUE['workers'][0]['cpu_affinity']: this process may not use processors 1000, "
        f"1001; it may use processor{plural} {listed}"
    )


def test_a_worker_that_is_a_thread_refuses_an_affinity(make_project: MakeProject) -> None:
    project = make_project(on_processors(0))
    said = refusal(project, "--mode", "async")
    assert "STEADY_QUEUE['workers'][0]['cpu_affinity'] is (0,), which needs a worker" in said


def test_a_system_without_affinity_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity")
    workers = [Configuration.Worker(), Configuration.Worker(cpu_affinity=[0])]
    options = Configuration.Options(workers=workers).resolve()
    with pytest.raises(ConfigurationError, match="cannot restrict a process to some") as caught:
        require_means(options, "default", threads=False)
    assert "STEADY_QUEUE['workers'][1]['cpu_affinity']" in str(caught.value)


def test_a_system_that_does_not_tell_of_memory_refuses_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steady_queue_core.processes.base.system.PROC", "/nowhere")
    options = Configuration.Options(workers=[{"recycle_rss": 1 << 30}]).resolve()
    with pytest.raises(ConfigurationError, match="does not tell how much memory"):
        require_means(options, "default", threads=False)
