"""What a project is told of its processes, by signals and hooks."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steady_queue_core import signals
from steady_queue_core.dialects import portable
from steady_queue_core.models import Process
from steady_queue_core.models.process import register
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.supervisor.pruning import Pruner
from steady_queue_core.processes.supervisor.recovery import Rescuer

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue
from .waiting import wait_for

NOTES = """
    import os

    from steady_queue_core import hooks, signals

    def note(*words):
        with open(BASE_DIR / "notes.log", "a") as file:
            file.write(" ".join(map(str, words)) + chr(10))

    def connect(kind, moment):
        hook = getattr(hooks, f"on_{kind}_{moment}".replace("_supervisor", ""))

        @hook
        def leaves(process):
            note("first", kind, moment)
            raise (SystemExit if moment == "stop" else RuntimeError)("told to fail")

        if moment != "stop":
            @hook
            def comes_next(process):
                note("next", kind, moment, process.using, process.pid == os.getpid())

    for kind in ("supervisor", "worker", "dispatcher"):
        for moment in ("start", "stop", "exit"):
            connect(kind, moment)

    def restarted(process_kind, exitcode, replacement_pid, **kwargs):
        note("restarted", process_kind, exitcode)

    def lost(task_result, process_name, error, **kwargs):
        note("lost", task_result.id, type(error).__name__)

    def retried(task_result, **kwargs):
        note("retried", task_result.id, task_result.status)

    signals.process_restarted.connect(restarted)
    signals.task_lost.connect(lost)
    signals.task_retried.connect(retried)
"""


def notes(project: Project) -> list[str]:
    path = project.folder / "notes.log"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("mode", ["fork", "async"])
def test_hooks_run_in_order_and_one_that_fails_harms_nobody(
    make_project: MakeProject, mode: str
) -> None:
    project = make_project(queue(processes=1, supervisor_mode=mode), extra=NOTES)
    supervisor = project.start()
    [job] = project.enqueue("work", [0.1])
    project.wait_done()
    assert supervisor.stop() == 0
    assert project.state_of(job) == "finished"
    said = notes(project)
    for kind in ("supervisor", "worker", "dispatcher"):
        assert [each for each in said if f" {kind} " in each] == [
            f"first {kind} start",
            f"next {kind} start default True",
            f"first {kind} stop",
            f"first {kind} exit",
            f"next {kind} exit default True",
        ]
    assert said[0] == "first supervisor start"
    assert said[-1] == "next supervisor exit default True"
    assert "connect.<locals>.leaves" in supervisor.errors()


def test_a_stop_in_a_hook_of_the_supervisor_starts_no_other_process(
    make_project: MakeProject,
) -> None:
    extra = """
        import os, signal

        from steady_queue_core.hooks import on_start

        @on_start
        def stop(process):
            os.kill(process.pid, signal.SIGTERM)
    """
    supervisor = make_project(queue(processes=1), extra=extra).start()
    assert supervisor.wait_exit() == 0
    assert "Started" not in supervisor.errors()


def test_a_killed_worker_is_told_of_as_lost_tasks_and_as_a_restart(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1), extra=NOTES)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [job] = project.enqueue("work_again", [0.5])
    project.wait_started(job)
    supervisor.send(signal.SIGKILL, worker)
    project.wait_done()
    assert supervisor.stop() == 0
    assert {"restarted worker -9", f"lost {job} ProcessExitError", f"retried {job} READY"} <= set(
        notes(project)
    )


def test_a_quit_sends_no_end_of_the_worker(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1), extra=NOTES)
    supervisor = project.start()
    wait_for(lambda: "next worker start default True" in notes(project), 20, "a worker")
    assert supervisor.stop(signal.SIGQUIT) == 0
    said = notes(project)
    assert not [each for each in said if "worker exit" in each]
    assert "next supervisor exit default True" in said


class Recorder:
    """Remembers what a signal has sent."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **payload: Any) -> None:
        self.calls.append(payload)


@pytest.fixture
def recorder_of(request: pytest.FixtureRequest) -> Callable[[Any], Recorder]:
    def connect(signal: Any) -> Recorder:
        recorder = Recorder()
        signal.connect(recorder)
        request.addfinalizer(lambda: signal.disconnect(recorder))
        return recorder

    return connect


@pytest.mark.django_db(transaction=True)
def test_a_silent_process_is_told_of_when_it_was_pruned(
    recorder_of: Callable[[Any], Recorder],
) -> None:
    pruned = recorder_of(signals.process_pruned)
    for name in ("silent", "alive"):
        register(
            "default", kind="worker", name=name, pid=7, hostname="there", supervisor_id=None,
            metadata="{}",
        )  # fmt: skip
    past = portable.storable(datetime(2020, 1, 1, tzinfo=UTC))
    Process.objects.filter(name="silent").update(last_heartbeat_at=past)
    database = QueueDatabase("default")
    pruning = Pruner(database, Rescuer(database), timedelta(minutes=5))

    pruning.prune(pruning.expired(), lambda process: None)

    [call] = pruned.calls
    assert call["sender"] is signals.ProcessLifecycle
    told = [call[key] for key in ("process_kind", "process_name", "pid", "hostname", "using")]
    assert told == ["worker", "silent", 7, "there", "default"]
