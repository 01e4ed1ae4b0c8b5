"""Middleware in the processes that enqueue, and in those that run tasks."""

from __future__ import annotations

import os

import pytest

from .conftest import MakeProject
from .scenarios import queue, refusal, stop_all

AROUND = """
import os
from pathlib import Path
from steady_queue_core.middleware import Middleware

LOG = Path(__file__).with_name("around.log")


class Around(Middleware):
    def enqueue(self, calls, proceed):
        self.note(f"stores {len(calls)}")
        return proceed(calls)

    def execute(self, context, proceed):
        self.note(f"runs {context.task_result.id}")
        return proceed()

    async def aexecute(self, context, proceed):
        self.note(f"awaits {context.task_result.id}")
        return await proceed()

    def note(self, what):
        with LOG.open("a") as log:
            log.write(f"{os.getpid()} {what}\\n")
"""
EXTRA = 'TASKS["default"]["OPTIONS"] = {{"middleware": ["{}"]}}\n'


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_it_is_around_enqueues_and_executions(make_project: MakeProject, executor: str) -> None:
    settings = queue(processes=1)
    settings["workers"][0]["executor"] = executor
    project = make_project(
        settings, extra=EXTRA.format("around.Around"), files={"around.py": AROUND}
    )
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    [first] = project.enqueue("work")
    [second] = project.enqueue("awork")
    project.wait_done(20)
    stop_all(project)
    lines = (project.folder / "around.log").read_text().splitlines()
    client = project.client._process.pid
    assert lines.count(f"{client} stores 1") == 2
    assert len(lines) == 4
    assert client != os.getpid()
    ran = [line.partition(" ") for line in lines if "stores" not in line]
    assert {what for _, _, what in ran} == {f"runs {first}", f"awaits {second}"}
    if executor == "threads":
        assert {pid for pid, _, _ in ran} == {str(worker)}
    else:
        assert {pid for pid, _, _ in ran}.isdisjoint({str(worker), str(client)})


def test_a_queue_whose_middleware_is_missing_does_not_start(make_project: MakeProject) -> None:
    message = refusal(make_project(queue(), extra=EXTRA.format("around.Missing")))
    assert "TASKS['default']['OPTIONS']['middleware']: 'around.Missing' cannot be" in message
