"""Tasks whose time is over: real processes, on every database."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from . import proc
from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import queue
from .waiting import wait_for

TIME_OUT = "steady_queue_core.errors.TaskTimeout"
#: Seconds for a worker to be replaced, on a busy machine, beyond the time-out and the grace.
REPLACEMENT = 12.0
LIMITS = {"timeout": 1.0, "timeout_grace": 1.0}
#: For short jobs that must not reach them, on a busy machine.
WIDE_LIMITS = {"timeout": 4.0, "timeout_grace": 1.0}


def hanging(threads: int = 3, **options: Any) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` with one worker that knows the tasks that hang."""
    return queue(processes=1, threads=threads, task_modules=["tests.faultapp.hanging"], **options)


def errors_of(project: Project, job: int) -> list[tuple[str, str]]:
    [(text,)] = project.query(f"SELECT errors FROM steady_queue_jobs WHERE id = {job}")
    return [(path, told) for path, told, *_ in json.loads(text or "[]")]


def wait_timed_out(project: Project, job: int, seconds: float) -> str:
    """Wait until a job has failed because of its time; return the text of the error."""
    wait_for(lambda: project.state_of(job) == "failed", seconds, f"the end of job {job}")
    [(path, text)] = errors_of(project, job)
    assert path == TIME_OUT, text
    return text


def value_of(project: Project, job: int) -> Any:
    [(value,)] = project.query(f"SELECT return_value FROM steady_queue_jobs WHERE id = {job}")
    return json.loads(value)


def seconds_of(project: Project, job: int) -> float:
    """Return how long the latest attempt took from its start until now."""
    return time.monotonic() - project.attempts_at(job)[-1].started_at / 1e9


@pytest.mark.parametrize("where", EVERYWHERE)
def test_tasks_that_can_be_interrupted_end_at_once(
    where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(hanging(), **where)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    jobs = project.enqueue("hanging:spin", [], periods=LIMITS)
    jobs += project.enqueue("hanging:aspin", [], periods=LIMITS)
    others = project.enqueue("hanging:work", [2.5])
    others += project.enqueue("hanging:awork", [2.5])
    for job in jobs:
        text = wait_timed_out(project, job, 5)
        assert "The attempt has taken longer than its time-out of 1 s." in text
        assert seconds_of(project, job) < 4
    project.wait_done(20)
    assert [project.state_of(job) for job in others] == ["finished"] * 2
    assert [value_of(project, job) for job in others] == [False] * 2
    # The threads and the loop run others, which nothing interrupts.
    more = project.enqueue("hanging:work", *[[0.3]] * 4, periods={"timeout": 100})
    project.wait_done(20)
    assert [value_of(project, job) for job in more] == [True] * 4
    assert supervisor.workers == [worker] or supervisor.workers() == [worker]


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("task", ["sleep", "swallow", "aswallow", "hold"])
def test_the_worker_of_a_task_that_does_not_end_is_replaced(
    task: str, where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(hanging(), **where)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    beside = project.enqueue("hanging:work", [0.2], [3.0])
    beside += project.enqueue("hanging:awork", [3.0])
    for job in beside:
        project.wait_started(job)
    [job] = project.enqueue(f"hanging:{task}", [], periods=LIMITS)
    project.wait_started(job)
    later = project.enqueue("hanging:work", *[[0.05]] * 20, periods={"timeout": 60})
    text = wait_timed_out(project, job, 2 + 3 + REPLACEMENT)
    assert "time-out of 1 s and did not end in the next 1 s: its worker was replaced." in text
    project.wait_done(30)
    for other in beside + later:
        assert project.state_of(other) == "finished"
        assert errors_of(project, other) == []
    # None was charged; where the interpreter was held, those beside it had to begin anew.
    if task != "hold":
        assert [len(project.attempts_at(other)) for other in beside + later] == [1] * 23
    assert len(project.attempts_at(job)) == 1
    assert not proc.alive(worker)
    assert len(supervisor.wait_ready(1)) == 1


def hold_the_interpreter(project: Project) -> list[int]:
    """Have a worker run short jobs and one that holds the interpreter; return the short ones."""
    project.start().wait_ready(1)
    # All of these are past their time when the supervisor looks.
    innocent = project.enqueue("hanging:work", *[[0.5]] * 3, periods=WIDE_LIMITS)
    [job] = project.enqueue("hanging:hold", [], periods=WIDE_LIMITS)
    wait_timed_out(project, job, 5 + REPLACEMENT)
    project.wait_done(20)
    return innocent


def block_the_loop(project: Project) -> list[int]:
    """Have a worker run coroutines and one that blocks the loop; return the others."""
    project.start().wait_ready(1)
    innocent = project.enqueue("hanging:awork", *[[0.5]] * 3, periods=WIDE_LIMITS)
    [thread] = project.enqueue("hanging:work", [7.0])
    [job] = project.enqueue("hanging:ablock", [], periods=WIDE_LIMITS)
    wait_timed_out(project, job, 9 + REPLACEMENT)
    project.wait_done(20)
    assert len(project.attempts_at(thread)) == 1
    return [*innocent, thread]


def charged(project: Project, jobs: list[int]) -> list[int]:
    return [job for job in jobs if errors_of(project, job)]


def test_a_held_interpreter_charges_only_who_holds_it(make_project: MakeProject) -> None:
    project = make_project(hanging(threads=4))
    assert charged(project, hold_the_interpreter(project)) == []


@pytest.mark.thorough
def test_without_a_look_at_waiting_threads_others_would_be_charged(
    make_project: MakeProject,
) -> None:
    project = make_project(hanging(threads=4))
    project.mutant = "no look at waiting threads"
    assert charged(project, hold_the_interpreter(project)) != []


def test_a_blocked_loop_charges_only_who_blocks_it(make_project: MakeProject) -> None:
    project = make_project(hanging())
    assert charged(project, block_the_loop(project)) == []


@pytest.mark.thorough
def test_without_a_look_at_what_the_loop_runs_others_would_be_charged(
    make_project: MakeProject,
) -> None:
    project = make_project(hanging())
    project.mutant = "no blame for blocking"
    assert charged(project, block_the_loop(project)) != []


def end_just_in_time(project: Project) -> list[int]:
    """Have jobs end at about the time when their time is over, each of them followed by others."""
    project.start().wait_ready(1)
    limits = {"timeout": 0.2, "timeout_grace": 5.0}
    almost = [[0.15 + number / 1000] for number in range(50)]
    project.enqueue("hanging:work", *almost, periods=limits)
    others = project.enqueue("hanging:work", *[[0.05]] * 160)
    project.wait_done(60)
    return others


def test_a_time_that_is_over_hits_no_other_job(make_project: MakeProject) -> None:
    project = make_project(hanging())
    assert charged(project, end_just_in_time(project)) == []


@pytest.mark.thorough
def test_if_ends_were_not_noticed_other_jobs_would_be_hit(make_project: MakeProject) -> None:
    project = make_project(hanging())
    project.mutant = "no end to time-outs"
    assert charged(project, end_just_in_time(project)) != []


def test_who_waits_for_a_blocked_loop_is_not_given_up(make_project: MakeProject) -> None:
    project = make_project(hanging(threads=1))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [innocent] = project.enqueue("hanging:aspin", [], periods=LIMITS)
    [blocks] = project.enqueue("hanging:ablock", [])
    project.wait_started(innocent)
    project.wait_started(blocks)
    wait_for(lambda: seconds_of(project, innocent) > 5, 10, "the end of its time")
    assert project.state_of(innocent) == "claimed"
    assert supervisor.wait_ready(1) == [worker]


def test_a_time_that_is_over_before_the_task_process_is_there_costs_no_worker(
    make_project: MakeProject,
) -> None:
    settings = hanging()
    settings["workers"][0]["executor"] = "processes"
    project = make_project(settings)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    # Less than it takes to fork one.
    limits = {"timeout": 0.0001, "timeout_grace": 2.0}
    jobs = project.enqueue("hanging:sleep", *[[]] * 3, periods=limits)
    for job in jobs:
        assert "longer than its time-out of 0.0001 s." in wait_timed_out(project, job, 10)
    later = project.enqueue("hanging:work", [0.0])
    project.wait_done(10)
    assert [project.state_of(job) for job in later] == ["finished"]
    assert supervisor.workers() == [worker]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_task_processes_are_killed(where: dict[str, str], make_project: MakeProject) -> None:
    settings = hanging(threads=2)
    settings["workers"][0]["executor"] = "processes"
    project = make_project(settings, **where)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    jobs = []
    for task in ("spin", "swallow", "sleep", "hold", "aswallow", "ablock"):
        jobs += project.enqueue(f"hanging:{task}", [], periods=LIMITS)
    others = project.enqueue("hanging:work", *[[0.3]] * 6, periods=LIMITS)
    for job in jobs:
        text = wait_timed_out(project, job, 15)
        assert "The attempt has taken longer than its time-out of 1 s." in text
        [attempt] = project.attempts_at(job)
        assert not proc.alive(attempt.pid)
    project.wait_done(20)
    assert [value_of(project, job) for job in others] == [True] * 6
    assert supervisor.wait_ready(1) == [worker]


# On SQLite, a task's transaction keeps all others from writing.
@pytest.mark.parametrize("where", EVERYWHERE[1:])
def test_what_a_transaction_has_written_is_gone(
    where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(hanging(), **where)
    project.start().wait_ready(1)
    jobs = project.enqueue("hanging:query", [], periods=LIMITS)
    jobs += project.enqueue("hanging:write_and_spin", [], periods=LIMITS)
    for job in jobs:
        wait_timed_out(project, job, 5)
    assert project.query("SELECT count(*) FROM faultapp_note") == [(0,)]


def test_a_task_chooses_how_it_ends(make_project: MakeProject) -> None:
    project = make_project(hanging())
    project.start().wait_ready(1)
    [job] = project.enqueue("hanging:give_in", [], periods=LIMITS)
    [snoozes] = project.enqueue("hanging:put_off", [], periods=LIMITS)
    wait_for(lambda: project.state_of(job) == "finished", 5, "the end of a task that returns")
    assert value_of(project, job) == "in part"
    wait_for(lambda: project.state_of(snoozes) == "scheduled", 5, "a snooze")
    assert errors_of(project, snoozes) == []


def test_a_stop_is_obeyed_while_a_worker_waits_for_its_other_tasks(
    make_project: MakeProject,
) -> None:
    project = make_project(hanging(shutdown_timeout=1.0))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [other] = project.enqueue("hanging:work", [100.0])
    [job] = project.enqueue("hanging:sleep", [], periods=LIMITS)
    project.wait_started(other)
    project.wait_started(job)
    wait_for(lambda: len(supervisor.workers()) == 2, 10, "a successor")
    assert proc.alive(worker)
    assert supervisor.stop(signal.SIGTERM, seconds=10) == 0
    wait_timed_out(project, job, 1)
    assert (project.state_of(other), errors_of(project, other)) == ("ready", [])


def test_a_killed_worker_that_waits_charges_both(make_project: MakeProject) -> None:
    project = make_project(hanging())
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [other] = project.enqueue("hanging:work", [100.0])
    [job] = project.enqueue("hanging:sleep", [], periods=LIMITS)
    project.wait_started(other)
    wait_for(
        lambda: "worker.stuck" in supervisor.errors() or len(supervisor.workers()) == 2,
        10,
        "a successor",
    )
    supervisor.send(signal.SIGKILL, worker)
    wait_timed_out(project, job, 5)
    wait_for(lambda: project.state_of(other) == "failed", 5, "the end of the other one")
    assert errors_of(project, other)[0][0] == "steady_queue_core.errors.ProcessExitError"


def test_threads_in_one_process_replace_a_stuck_worker(make_project: MakeProject) -> None:
    project = make_project(hanging())
    supervisor = project.start("--mode", "async")
    [beside] = project.enqueue("hanging:work", [3.0])
    [job] = project.enqueue("hanging:sleep", [], periods=LIMITS)
    project.wait_started(job)
    later = project.enqueue("hanging:work", *[[0.05]] * 10)
    wait_timed_out(project, job, 5 + REPLACEMENT)
    project.wait_done(20)
    for other in [beside, *later]:
        assert (project.state_of(other), errors_of(project, other)) == ("finished", [])
    assert supervisor.stop(signal.SIGTERM, seconds=15) == 0


def test_all_ways_to_hang_at_once_cost_nobody_else(make_project: MakeProject) -> None:
    project = make_project(hanging(threads=6))
    project.start().wait_ready(1)
    jobs = []
    others = project.enqueue("hanging:work", *[[0.1 * number] for number in range(10)])
    for task in ("spin", "sleep", "swallow", "hold", "aspin", "aswallow", "ablock"):
        jobs += project.enqueue(f"hanging:{task}", [], periods=LIMITS)
        others += project.enqueue("hanging:work", [0.5], [0.0])
        others += project.enqueue("hanging:awork", [0.5], [0.0])
    for job in jobs:
        wait_timed_out(project, job, 90)
    project.wait_done(30)
    assert {project.state_of(other) for other in others} == {"finished"}
    assert charged(project, others) == []


#: The first time that a worker begins to watch the time, there are no threads left.
SHORT_OF_THREADS = """
from steady_queue_core.processes.worker import time_outs

class Refused(time_outs.Thread):
    def start(self):
        time_outs.Thread = Refused.__base__
        raise RuntimeError("can't start new thread")

time_outs.Thread = Refused
"""


def test_a_job_whose_time_nobody_can_watch_fails_and_costs_no_thread(
    make_project: MakeProject,
) -> None:
    settings = hanging(threads=1)
    settings["task_modules"].append("short")
    project = make_project(settings, files={"short.py": SHORT_OF_THREADS})
    project.start().wait_ready(1)
    [first, second] = project.enqueue("hanging:spin", [], [], periods=LIMITS)
    wait_for(lambda: project.state_of(first) == "failed", 20, "the end of the first job")
    [(path, text)] = errors_of(project, first)
    assert path == "builtins.RuntimeError"
    assert "can't start new thread" in text
    # The second one runs on the same thread, and is watched.
    wait_timed_out(project, second, 20)
