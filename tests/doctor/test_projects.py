"""What the doctor says of real processes, from another one: nothing while they are well."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pytest

from ..processes.conftest import EVERYWHERE, MakeProject
from ..processes.harness import Project
from ..processes.waiting import wait_for

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="looks at processes in /proc"
)

QUEUE = {"workers": [{"queues": ["default"]}], "process_heartbeat_interval": 1,
         "process_alive_threshold": 4}  # fmt: skip


def doctor(project: Project, *arguments: object) -> tuple[int, list[Any]]:
    """Return the exit status and the findings."""
    told = project.manage("steady_queue", "doctor", "--json", *map(str, arguments))
    assert told.stdout, told.stderr
    return told.returncode, json.loads(told.stdout)["findings"]


def wait_first(project: Project, code: str, *arguments: object) -> Any:
    """Return the first finding as soon as it has this code."""

    def first() -> Any:
        _, found = doctor(project, *arguments)
        return found[0] if found and found[0]["code"] == code else None

    return wait_for(first, 30, f"{code} as the first finding")


@pytest.mark.parametrize("place", EVERYWHERE)
def test_processes_that_are_well(place: dict[str, Any], make_project: MakeProject) -> None:
    project = make_project(QUEUE, **place)
    supervisor = project.start()
    supervisor.wait_ready()
    project.enqueue("work", [], [], [])
    project.wait_done()
    assert doctor(project) == (0, [])


def test_a_host_that_dies(make_project: MakeProject) -> None:
    project = make_project(QUEUE)
    assert [each["code"] for each in doctor(project)[1]] == ["process-none"]
    supervisor = project.start()
    supervisor.wait_ready()
    [unserved] = project.enqueue("work", queue="mail")
    [running] = project.enqueue("work", [60])
    project.wait_started(running)
    code, [found] = doctor(project)
    assert (code, found["code"]) == (1, "queue-unserved")
    assert doctor(project, unserved)[1][0] == found
    [state] = doctor(project, running)[1]
    assert state["code"] == "job-running"
    assert f"pid {supervisor.workers()[0]} on " in state["text"]

    supervisor.send_tree(signal.SIGKILL)
    found = wait_first(project, "process-none")
    assert "No process of the queue is alive" in found["text"]
    assert "1 waits, 1 is claimed" in found["text"]
    lost = wait_first(project, "claim-stale", running)
    assert "none is alive" in lost["remedy"]


def test_a_worker_that_is_stopped_by_a_signal(make_project: MakeProject) -> None:
    # Its supervisor notices it as well, after some time, and replaces it.
    project = make_project({**QUEUE, "process_alive_threshold": 8})
    supervisor = project.start()
    [pid] = supervisor.wait_ready()
    [job_id] = project.enqueue("work", [60])
    project.wait_started(job_id)
    supervisor.send(signal.SIGSTOP, supervisor.pid)
    supervisor.send(signal.SIGSTOP, pid)
    found = wait_first(project, "claim-stale", job_id)
    assert f"pid {pid} on " in found["text"]
