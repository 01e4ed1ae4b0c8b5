"""Workers that run their tasks in child processes."""

from __future__ import annotations

import json
import random
import signal
import time
from typing import Any

import pytest

from . import proc
from .checker import Kill
from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project, Supervisor
from .scenarios import durations, queue, refusal, stop_all, verdict, wait_gone
from .waiting import wait_for

#: Notes each signal about a task, with the process that has sent it.
LISTENING = """
import json, os, re
from pathlib import Path

from steady_queue_core.compat import task_finished, task_started
from steady_queue_core.signals import task_lost, task_retried

def listen(signal, name):
    def receive(sender, task_result, error=None, **kwargs):
        said = error and f"{type(error).__name__}: {error}"
        if name == "finished":
            said = task_result.status.name
        said = said and re.sub("worker-[0-9a-f]+", "worker-NAME", said)
        line = json.dumps([name, task_result.id, os.getpid(), said])
        with Path(__file__).with_name("heard").open("a") as file:
            file.write(line + "\\n")
    signal.connect(receive, weak=False)

for signal, name in (
    (task_started, "started"), (task_finished, "finished"),
    (task_retried, "retried"), (task_lost, "lost"),
):
    listen(signal, name)
"""

EXIT_ERROR = "steady_queue_core.errors.ProcessExitError"


def in_processes(threads: int = 2, **options: Any) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` of one worker with that many task processes."""
    found = queue(processes=1, threads=threads, **options)
    found["workers"][0]["executor"] = "processes"
    return found


def children_of(pid: int) -> list[proc.Stat]:
    return proc.children(pid)


def nursery_of(worker: int) -> proc.Stat:
    [nursery] = children_of(worker)
    return nursery


def task_processes(worker: int) -> list[proc.Stat]:
    """Return the task processes of a worker, which its nursery has forked."""
    return children_of(nursery_of(worker).pid)


def wait_task_processes(worker: int, count: int) -> None:
    wait_for(lambda: len(task_processes(worker)) == count, 20, f"{count} task processes")


def kill(project: Project, target: proc.Stat | int, signum: int = signal.SIGKILL) -> None:
    """Signal a process below a worker."""
    found = proc.stat(target) if isinstance(target, int) else target
    assert found is not None
    before = time.monotonic_ns()
    if proc.send(found.pid, signum, found.birth):
        project.kills.append(Kill(found.pid, before, time.monotonic_ns(), signum))


def errors_of(project: Project, job_id: int) -> list[list[str]]:
    [(text,)] = project.query("SELECT errors FROM steady_queue_jobs WHERE id = ?", job_id)
    return [each[:2] for each in json.loads(text)]


def failure_of(project: Project, job_id: int) -> tuple[str, str]:
    [found] = project.query(
        "SELECT exception_class, message FROM steady_queue_failed_executions WHERE job_id = ?",
        job_id,
    )
    return str(found[0]), str(found[1])


def attempts_used(project: Project, job_id: int) -> int:
    return project.snapshot().jobs[job_id].attempts


def start(project: Project) -> tuple[Supervisor, int]:
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    return supervisor, worker


@pytest.mark.parametrize("where", EVERYWHERE)
def test_functions_and_coroutines_run_in_child_processes(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(in_processes(), **where)
    _, worker = start(project)
    jobs = project.enqueue("work", *[[0.01]] * 30)
    jobs += project.enqueue("awork", *[[0.01]] * 30)
    jobs += project.enqueue("note", *[[0.0]] * 10)
    jobs += project.enqueue("flaky", [2])
    [failing] = project.enqueue("fail_with", ["LookupError", "not there: é"])
    [echoed] = project.enqueue("echo", [{"text": 'a "quoted" é', "numbers": [1, 2.5, None]}])
    project.wait_done()
    assert {project.state_of(job_id) for job_id in [*jobs, echoed]} == {"finished"}
    pids = {attempt.pid for attempt in project.attempts()}
    assert pids == {each.pid for each in task_processes(worker)}
    assert len(pids) == 2
    assert failure_of(project, failing) == ("builtins.LookupError", "not there: é")
    [[path, traceback]] = errors_of(project, failing)
    assert path == "builtins.LookupError"
    assert "in fail_with" in traceback
    value = json.loads(project.snapshot().jobs[echoed].return_value or "")
    assert value == {"text": 'a "quoted" é', "numbers": [1, 2.5, None]}
    stop_all(project)
    wait_gone([*pids, worker], 5)


def test_a_default_time_out_of_sockets_is_none_of_a_task(make_project: MakeProject) -> None:
    hasty = {"hasty.py": "import socket\n\nsocket.setdefaulttimeout(0.3)\n"}
    modules = ["tests.faultapp.tasks", "hasty"]
    project = make_project(in_processes(1, task_modules=modules), files=hasty)
    _, worker = start(project)
    jobs = project.enqueue("work", [1.0])
    project.wait_done()
    [pid] = {each.pid for each in task_processes(worker)}
    time.sleep(0.6)  # Nothing is to happen in this time.
    jobs += project.enqueue("work", [0.0])
    project.wait_done()
    assert [attempt.job_id for attempt in project.attempts()] == jobs
    assert {attempt.pid for attempt in project.attempts()} == {pid}
    stop_all(project)


def test_a_killed_task_process_costs_one_job_and_is_replaced(make_project: MakeProject) -> None:
    project = make_project(in_processes())
    supervisor, worker = start(project)
    [killed] = project.enqueue("work", [30.0])
    pid = project.wait_started(killed).pid
    [other] = project.enqueue("work", [1.0])
    project.wait_started(other)
    waiting = project.enqueue("work", *[[0.01]] * 50)
    kill(project, pid)
    project.wait_done()
    path, message = failure_of(project, killed)
    assert path == EXIT_ERROR
    assert f"The task process (pid {pid}) of worker-" in message
    assert message.endswith("was killed by SIGKILL while it was running this job.")
    assert {project.state_of(job_id) for job_id in [other, *waiting]} == {"finished"}
    assert all(attempts_used(project, job_id) == 1 for job_id in [killed, other, *waiting])
    assert supervisor.workers() == [worker]
    both = {attempt.pid for attempt in project.attempts()} - {pid}
    assert both == {each.pid for each in task_processes(worker)}
    assert len(both) == 2
    assert "was interrupted" in supervisor.errors()
    stop_all(project)


def test_a_job_whose_process_was_killed_runs_again_if_an_attempt_is_left(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes(threads=1))
    start(project)
    [job] = project.enqueue("work_again", [1.0])
    first = project.wait_started(job)
    kill(project, first.pid)
    second = project.wait_started(job, times=2)
    assert second.pid != first.pid
    project.wait_done()
    assert project.state_of(job) == "finished"
    assert attempts_used(project, job) == 2
    assert [path for path, _ in errors_of(project, job)] == [EXIT_ERROR]
    stop_all(project)


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_task_processes_killed_at_any_time_cost_only_what_they_were_running(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(in_processes(threads=3), **where)
    _, worker = start(project)
    count = int(400 * SCALE)

    def more() -> None:
        project.enqueue("work", *durations(count, 0.03))
        project.enqueue("work_again", *durations(count, 0.03, seed=2))
        project.enqueue("awork", *durations(count, 0.03, seed=3))

    more()
    chance = random.Random(11)
    while project.unfinished() or len(project.kills) < 10:
        if not project.unfinished():
            more()
        time.sleep(chance.uniform(0.05, 0.3))
        if victims := task_processes(worker):
            kill(project, chance.choice(victims))
    snapshot = project.snapshot()
    stop_all(project)
    # One start for each kill at most, and nothing else was charged.
    assert verdict(project, threads=1) == []
    used = sum(row.attempts for row in snapshot.jobs.values())
    lost = sum(row.states == ("failed",) for row in snapshot.jobs.values())
    jobs = len(snapshot.jobs)
    print(f"\n{jobs} jobs, {len(project.kills)} kills: {used} attempts, {lost} failed")
    assert used - jobs + lost <= len(project.kills)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_an_idle_process_that_ends_costs_nothing(make_project: MakeProject, signum: int) -> None:
    project = make_project(in_processes(threads=1))
    _, worker = start(project)
    project.enqueue("work", [0.0])
    project.wait_done()
    [idle] = task_processes(worker)
    kill(project, idle, signum)
    wait_gone([idle.pid], 5)
    jobs = project.enqueue("work", *[[0.0]] * 5)
    project.wait_done()
    assert {project.state_of(job_id) for job_id in jobs} == {"finished"}
    assert all(attempts_used(project, job_id) == 1 for job_id in jobs)
    stop_all(project)
    assert verdict(project) == []


def test_term_lets_a_task_process_finish_its_job(make_project: MakeProject) -> None:
    project = make_project(in_processes(threads=1))
    start(project)
    [job] = project.enqueue("work", [0.5])
    pid = project.wait_started(job).pid
    later = project.enqueue("work", *[[0.0]] * 10)
    kill(project, pid, signal.SIGTERM)
    project.wait_done()
    wait_gone([pid], 5)
    assert all(attempts_used(project, job_id) == 1 for job_id in [job, *later])
    assert pid not in {project.attempts_at(job_id)[0].pid for job_id in later}
    stop_all(project)
    assert verdict(project) == []


@pytest.mark.parametrize(
    ("task", "arguments", "how"),
    [
        ("leave", [0], "ended with exit code 0"),
        ("leave", [3], "ended with exit code 3"),
        ("crash", [], "was killed by SIGSEGV"),
    ],
)
def test_a_job_that_ends_its_process_fails_alone(
    make_project: MakeProject, task: str, arguments: list[int], how: str
) -> None:
    project = make_project(in_processes(threads=1))
    supervisor, worker = start(project)
    [bad] = project.enqueue(task, arguments)
    good = project.enqueue("work", *[[0.0]] * 20)
    project.wait_done()
    path, message = failure_of(project, bad)
    assert path == EXIT_ERROR
    assert how in message
    assert {project.state_of(job_id) for job_id in good} == {"finished"}
    assert all(attempts_used(project, job_id) == 1 for job_id in good)
    assert supervisor.workers() == [worker]
    stop_all(project)


def test_the_end_of_a_process_is_noticed_though_a_copy_of_it_goes_on(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes(threads=1))
    start(project)
    [job] = project.enqueue("leave_open_copy", [20.0])
    project.wait_done(10)
    assert project.state_of(job) == "finished"
    assert len(project.attempts_at(job)) == 2
    stop_all(project)


def test_the_task_processes_of_a_killed_worker_end_and_only_what_they_ran_is_charged(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes())
    supervisor, worker = start(project)
    project.enqueue("work", *[[0.0]] * 100)  # From now on it claims ahead.
    project.wait_done()
    running = project.enqueue("work", [30.0], [30.0])
    for job_id in running:
        project.wait_started(job_id)
    below = [nursery_of(worker), *task_processes(worker)]
    waiting = project.enqueue("work", *[[0.01]] * 50)
    supervisor.send(signal.SIGKILL, worker)
    wait_gone([each.pid for each in below], 2)
    project.wait_done()
    for job_id in running:
        assert failure_of(project, job_id)[0] == EXIT_ERROR
    assert {project.state_of(job_id) for job_id in waiting} == {"finished"}
    assert all(attempts_used(project, job_id) == 1 for job_id in [*running, *waiting])
    stop_all(project)


def test_the_task_processes_of_a_killed_supervisor_end(make_project: MakeProject) -> None:
    project = make_project(in_processes())
    supervisor, worker = start(project)
    running = project.enqueue("spin", [60.0], [60.0])
    for job_id in running:
        project.wait_started(job_id)
    below = [nursery_of(worker), *task_processes(worker)]
    supervisor.send(signal.SIGKILL)
    wait_gone([worker, *(each.pid for each in below)], 6)


def test_a_worker_whose_nursery_was_killed_is_replaced(make_project: MakeProject) -> None:
    project = make_project(in_processes())
    supervisor, worker = start(project)
    [running] = project.enqueue("work", [30.0])
    pid = project.wait_started(running).pid
    kill(project, nursery_of(worker))
    wait_gone([pid], 5)
    jobs = project.enqueue("work", *[[0.01]] * 20)
    project.wait_done()
    assert failure_of(project, running)[0] == EXIT_ERROR
    assert {project.state_of(job_id) for job_id in jobs} == {"finished"}
    assert all(attempts_used(project, job_id) == 1 for job_id in [running, *jobs])
    wait_for(lambda: worker not in supervisor.workers(), 10, "another worker")
    assert "The worker ends, and will be replaced" in supervisor.errors()
    stop_all(project)


def test_a_graceful_stop_lets_the_tasks_end(make_project: MakeProject) -> None:
    project = make_project(in_processes(shutdown_timeout=20))
    supervisor, worker = start(project)
    running = project.enqueue("work", [1.0], [1.5])
    for job_id in running:
        project.wait_started(job_id)
    waiting = project.enqueue("work", *[[0.01]] * 20)
    below = [nursery_of(worker), *task_processes(worker)]
    # As a service manager does, and the Ctrl-C of a terminal.
    for each in below:
        kill(project, each, signal.SIGTERM)
        kill(project, each, signal.SIGINT)
    assert supervisor.stop() == 0
    assert [project.state_of(job_id) for job_id in running] == ["finished"] * 2
    assert {project.state_of(job_id) for job_id in waiting} <= {"ready", "finished"}
    assert {attempts_used(project, job_id) for job_id in waiting} <= {0, 1}
    wait_gone([each.pid for each in below], 5)


def test_an_immediate_stop_ends_the_tasks_and_charges_no_attempt(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes(shutdown_timeout=60))
    supervisor, worker = start(project)
    running = project.enqueue("spin", [60.0], [60.0])
    for job_id in running:
        project.wait_started(job_id)
    below = [nursery_of(worker), *task_processes(worker)]
    for each in below:  # As the terminal does on Ctrl-\.
        kill(project, each, signal.SIGQUIT)
    began = time.monotonic()
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert time.monotonic() - began < 5
    assert not any(proc.alive(each.pid) for each in below)
    assert [project.state_of(job_id) for job_id in running] == ["ready"] * 2
    assert [attempts_used(project, job_id) for job_id in running] == [0, 0]


def test_a_task_that_outlasts_the_shutdown_ends_and_runs_again_later(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes(shutdown_timeout=0.5))
    supervisor, _ = start(project)
    [job] = project.enqueue("spin", [60.0])
    pid = project.wait_started(job).pid
    assert supervisor.stop() == 0
    assert not proc.alive(pid)
    assert project.state_of(job) == "ready"
    assert attempts_used(project, job) == 0


def test_jobs_of_one_key_run_one_at_a_time_in_the_processes(make_project: MakeProject) -> None:
    project = make_project(in_processes(threads=3))
    start(project)
    jobs = project.enqueue("one_by_one", *[[0.002]] * 100)
    jobs += project.enqueue("aone_by_one", *[[0.002]] * 20)
    project.wait_done()
    stop_all(project)
    assert {project.state_of(job_id) for job_id in jobs} == {"finished"}
    assert verdict(project) == []


def test_large_arguments_and_results_pass_and_too_large_ones_fail_alone(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes(threads=1))
    _, worker = start(project)
    # Quotes are escaped twice on their way; letters beyond ASCII take six characters each.
    texts = ['"\\' * 250_000, "é" * 150_000]
    echoed = project.enqueue("echo", *[[text] for text in texts])
    [largest] = project.enqueue("answer", [1_000_000])
    [too_large] = project.enqueue("answer", [2_000_000])
    project.wait_done()
    jobs = project.snapshot().jobs
    assert [json.loads(jobs[job_id].return_value or "") for job_id in echoed] == texts
    assert project.state_of(largest) == "finished"
    assert failure_of(project, too_large)[0].endswith("TaskArgumentError")
    [process] = task_processes(worker)
    assert {attempt.pid for attempt in project.attempts()} == {process.pid}
    stop_all(project)


def test_signals_are_sent_once_where_they_are_documented(make_project: MakeProject) -> None:
    options = in_processes(threads=1, task_modules=["listening"])
    project = make_project(options, files={"listening.py": LISTENING})
    _, worker = start(project)
    [flaky] = project.enqueue("flaky", [1])
    [echoed] = project.enqueue("echo", ["value"])
    project.wait_done()
    [process] = task_processes(worker)
    [lost] = project.enqueue("leave", [3])
    project.wait_done()

    file = project.folder / "heard"

    def heard() -> list[list[Any]]:
        found = [json.loads(line) for line in file.read_text().splitlines()]
        return found if sum(each[0] == "finished" for each in found) == 3 else []

    told = wait_for(heard, 10, "the signals")
    by_job = {
        job_id: [[name, *rest] for name, number, *rest in told if number == str(job_id)]
        for job_id in (flaky, echoed, lost)
    }
    error = "RuntimeError: attempt 1 fails"
    assert by_job[flaky] == [
        ["started", process.pid, None],
        ["retried", worker, f"ReportedTaskError: builtins.{error}"],
        ["started", process.pid, None],
        ["finished", worker, "SUCCESSFUL"],
    ]
    assert by_job[echoed] == [
        ["started", process.pid, None],
        ["finished", worker, "SUCCESSFUL"],
    ]
    death = f"The task process (pid {process.pid}) of worker-NAME ended with exit code 3"
    assert by_job[lost] == [
        ["started", process.pid, None],
        ["lost", worker, f"ProcessExitError: {death} while it was running this job."],
        ["finished", worker, "FAILED"],
    ]
    stop_all(project)


def test_programs_that_tasks_start_heed_signals_as_usual(make_project: MakeProject) -> None:
    project = make_project(in_processes(threads=1, task_modules=["tests.faultapp.rude"]))
    start(project)
    [job] = project.enqueue("rude:terminate", [])
    project.wait_done()
    assert json.loads(project.snapshot().jobs[job].return_value or "") == [-15, -15]
    stop_all(project)


def test_a_worker_that_is_a_thread_refuses_task_processes(make_project: MakeProject) -> None:
    project = make_project(in_processes())
    said = refusal(project, "--mode", "async")
    assert "STEADY_QUEUE['workers'][0]['executor'] is 'processes'" in said
    assert "--mode async" in said
    assert "EmbeddedQueue" in said
    supervisor = project.start("--mode", "async", "--executor", "threads")
    [job] = project.enqueue("work", [0.0])
    project.wait_done()
    assert project.attempts_at(job)[0].pid == supervisor.pid
    stop_all(project)


def test_two_task_processes_compute_at_the_same_time(make_project: MakeProject) -> None:
    project = make_project(in_processes(shutdown_timeout=0.5))
    start(project)
    running = project.enqueue("spin", [60.0], [60.0])
    pids = [project.wait_started(job).pid for job in running]
    # Whether they get two processors depends on what else this machine does.
    wait_for(lambda: all(map(proc.is_busy, pids)), 20, "two processes that compute")
    stop_all(project)


def test_what_a_coroutine_leaves_behind_and_does_not_end_costs_but_its_process(
    make_project: MakeProject,
) -> None:
    project = make_project(in_processes(threads=2, task_modules=["tests.faultapp.rude"]))
    supervisor = project.start()
    supervisor.wait_ready(1)
    immortal = project.enqueue("rude:leave_immortal", [], [])
    # Their outcomes do not wait for what they have left.
    wait_for(lambda: project.unfinished() == 0, 10, "the ends of both")
    project.enqueue("work", *[[0.0]] * 4)
    project.wait_done(20)
    stop_all(project)
    assert {project.state_of(job) for job in immortal} == {"finished"}
    assert supervisor.errors().count("does not end: its task process does") == 2
    rows = project.query("SELECT attempts FROM steady_queue_jobs")
    assert set(rows) == {(1,)}
