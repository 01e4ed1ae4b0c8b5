"""``result.wait()`` and ``await_result()``: a process that waits for what a worker does."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from .conftest import EVERYWHERE, MakeProject
from .scenarios import queue, stop_all
from .waiting import wait_for

#: Settings under which a wait is to leave nothing behind.
FRAGILE = """
DEBUG = True
DATABASES["default"]["CONN_MAX_AGE"] = 0
"""

both_ways = pytest.mark.parametrize("asynchronously", [False, True], ids=["wait", "await"])
everywhere = pytest.mark.parametrize("where", EVERYWHERE)


@everywhere
@both_ways
def test_a_wait_ends_soon_after_its_job(
    make_project: MakeProject, where: dict[str, Any], asynchronously: bool
) -> None:
    project = make_project(queue(processes=1), extra=FRAGILE, **where)
    project.start().wait_ready()
    for task, argument, status in (("work", 1.0, "SUCCESSFUL"), ("fail_at_length", 10, "FAILED")):
        project.client.begin(
            "wait_for_end", task=task, args=[argument], timeout=30, asynchronously=asynchronously
        )
        found = project.client.finish()
        assert found["status"] == status
        assert (found["value"] is not None) == (status == "SUCCESSFUL")
        # A tenth of the time that was waited, and a busy machine.
        assert found["back"] - found["ended"] < 1.0
        assert found["logged"] <= 3, "the looks of a wait fill connection.queries"
    stop_all(project)


@both_ways
def test_a_wait_without_a_worker_ends_in_time_with_an_error_that_names_the_job(
    make_project: MakeProject, asynchronously: bool
) -> None:
    project = make_project(queue())
    began = time.monotonic()
    found = project.client.call(
        "wait_for_end", task="work", args=[0], timeout=0.7, asynchronously=asynchronously
    )
    assert 0.7 <= time.monotonic() - began < 5
    assert found["error"] == "TimeoutError"
    assert found["text"] == (
        f"tests.faultapp.tasks.work #{found['id']} has not ended within 0.7 s: it is READY."
    )


@both_ways
def test_an_interrupt_ends_a_wait_without_a_limit(
    make_project: MakeProject, asynchronously: bool
) -> None:
    project = make_project(queue())
    client = project.new_client()
    try:
        client.begin(
            "wait_for_end", task="work", args=[0], timeout=None, asynchronously=asynchronously
        )
        wait_for(lambda: project.count("ready_executions"), 20, "the job")
        answer = _interrupted(client)
        assert answer["error"] == "KeyboardInterrupt"
    finally:
        client.close()


def _interrupted(client: Any) -> Any:
    os.kill(client._process.pid, signal.SIGINT)
    return client.finish()
