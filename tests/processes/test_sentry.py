"""Reports to Sentry, of real processes, whose transport writes them to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for

#: Writes what has gathered when it is told to flush, as the SDK's own transport does at the latest.
REPORTS = """
import json, os
from pathlib import Path

import sentry_sdk
from sentry_sdk.transport import Transport


class Files(Transport):
    waiting = []

    def capture_envelope(self, envelope):
        self.waiting += [
            [item.headers["type"], item.payload.json] for item in envelope.items
        ]

    def flush(self, timeout, callback=None):
        name = f"reports-{os.getpid()}.jsonl"
        with open(Path(__file__).with_name(name), "a") as file:
            for kind, payload in self.waiting:
                file.write(json.dumps([kind, payload]) + "\\n")
        self.waiting.clear()


def begin():
    sentry_sdk.init(
        dsn="http://key@localhost/1", transport=Files, traces_sample_rate=1.0,
        auto_enabling_integrations=False,
    )
"""
EXTRA = """
import reports

INSTALLED_APPS.append("steady_queue_core.contrib.sentry")
reports.begin()
"""


def told(project: Project) -> dict[int, list[Any]]:
    """Return what each process has sent, by its pid."""
    files = {
        int(path.stem.partition("-")[2]): path.read_text().splitlines()
        for path in Path(project.folder).glob("reports-*.jsonl")
    }
    return {pid: [json.loads(line) for line in written] for pid, written in files.items()}


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_each_failure_is_reported_once_and_sent_before_the_process_ends(
    make_project: MakeProject, executor: str
) -> None:
    settings = queue(processes=1, threads=1)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings, extra=EXTRA, files={"reports.py": REPORTS})
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    [flaky] = project.enqueue("flaky", [1])
    [failing] = project.enqueue("flaky", [99])
    project.wait_done(30)
    stop_all(project)
    assert "An integration has failed" not in supervisor.errors()
    found = told(project)
    by_job: dict[int, list[tuple[str, bool]]] = {}
    for pid, items in found.items():
        assert (pid == worker) is (executor == "threads") or not items
        for kind, payload in items:
            if kind == "event":
                mechanism = payload["exception"]["values"][-1]["mechanism"]
                job_id = int(payload["contexts"]["steady_queue"]["task_id"])
                frames = payload["exception"]["values"][-1]["stacktrace"]["frames"]
                own = [each for each in frames if each["module"].startswith("steady_queue_")]
                assert own
                assert not any(each.get("vars") for each in own)
                by_job.setdefault(job_id, []).append((payload["level"], mechanism["handled"]))
    attempts = len(project.attempts_at(failing))
    assert by_job == {
        flaky: [("warning", True)],
        failing: [*[("warning", True)] * (attempts - 1), ("error", False)],
    }
    transactions = [
        payload for items in found.values() for kind, payload in items if kind == "transaction"
    ]
    assert len(transactions) == 2 + attempts
    assert {each["contexts"]["trace"]["op"] for each in transactions} == {"queue.process"}


def test_a_lost_process_is_reported_once(make_project: MakeProject) -> None:
    settings = queue(processes=1, threads=1)
    settings["workers"][0]["executor"] = "processes"
    project = make_project(settings, extra=EXTRA, files={"reports.py": REPORTS})
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    project.enqueue("leave", [3])
    project.wait_done(30)
    wait_for(lambda: "ended with exit code 3" in supervisor.errors(), 20, "the loss")
    stop_all(project)
    [(kind, payload)] = told(project)[worker]
    assert kind == "event"
    assert payload["exception"]["values"][-1]["type"] == "ProcessExitError"
    assert payload["level"] == "error"
    assert payload["tags"]["task"] == "tests.faultapp.tasks.leave"
