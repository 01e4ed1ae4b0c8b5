"""A queue with nothing to do: it starts the next job at once, and costs close to nothing."""

from __future__ import annotations

import time
from statistics import median

from . import proc
from .conftest import MakeProject
from .harness import Project
from .scenarios import stop_all, verdict
from .starvation import watch_starvation
from .waiting import wait_for

#: Seconds between two looks of a worker that nothing wakes.
POLLING = 5.0

#: Notes every connection and every statement of every process of the project, with its pid.
STATEMENTS = """
import os
from django.db.backends.signals import connection_created

def trace(connection, **kwargs):
    file = os.open(BASE_DIR / "statements", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{os.getpid()} CONNECTED\\n".encode())
    connection.connection.set_trace_callback(
        lambda statement: os.write(file, f"{os.getpid()} {' '.join(statement.split())}\\n".encode())
    )

connection_created.connect(trace, weak=False)
"""


def latencies(project: Project, committed: list[list[int]]) -> list[float]:
    """Return the seconds from the commit of each job to its start."""
    started = {attempt.job_id: attempt.started_at for attempt in project.attempts()}
    return [(started[job_id] - instant) / 1e9 for job_id, instant in committed]


def test_jobs_start_at_once_though_the_worker_polls_rarely(make_project: MakeProject) -> None:
    worker = {"processes": 1, "threads": 2, "polling_interval": POLLING}
    project = make_project({"workers": [worker], "dispatchers": []})
    project.client.call("enqueue_one_by_one", count=0, pause=0)
    project.start().wait_ready(1)
    # It looks at ever longer intervals: 1 s, 2 s and 4 s after it began to wait, to name the last.
    time.sleep(2.3)
    for count in (1, 19):
        with watch_starvation(project.folder) as starvation:
            committed = project.client.call("enqueue_one_by_one", count=count, pause=0.02)
            project.enqueued += [job_id for job_id, _ in committed]
            project.wait_done(20)
        found = latencies(project, committed)
        print(f"\n{count} jobs: median {median(found) * 1000:.1f} ms, worst {max(found):.3f} s")
        assert max(found) < 1.0
    # Beside what the machine kept an idle thread waiting: the worker, and who tells it.
    assert median(found) < 0.05 + 2 * starvation.worst
    stop_all(project)
    assert verdict(project) == []


def test_an_idle_queue_on_stock_settings_hardly_wakes_up(make_project: MakeProject) -> None:
    project = make_project({}, extra=STATEMENTS)
    supervisor = project.start()
    supervisor.wait_ready(1)
    wait_for(lambda: project.count("processes") == 3, 30, "a dispatcher and a worker")
    log = project.folder / "statements"
    opened = f"{supervisor.pid} CONNECTED\n"
    # One before it forked, and another to look after its children.
    wait_for(lambda: log.read_text().count(opened) == 2, 30, "the supervisor's first look")
    tree = [supervisor.pid, *supervisor.children()]

    def has_settled() -> bool:
        """The dispatcher tidies up when it begins, and counts the jobs once a minute."""
        before = len(log.read_text().splitlines())
        time.sleep(1.0)
        return len(log.read_text().splitlines()) - before < 10 and time.time() % 60 < 54

    wait_for(has_settled, 30, "a second with hardly a statement")

    def measure() -> tuple[float, int, float, int]:
        return (
            time.monotonic(),
            sum(map(proc.wake_ups, tree)),
            sum(map(proc.processor_time, tree)),
            len(log.read_text().splitlines()),
        )

    before = measure()
    time.sleep(4.0)  # How long nothing happens is the experiment.
    after = measure()
    seconds, wake_ups, processor, statements = (b - a for a, b in zip(before, after, strict=True))
    print(
        f"\nfor each second: {wake_ups / seconds:.0f} wake-ups, {statements / seconds:.0f} "
        f"statements, {processor / seconds * 100:.1f} % of a processor"
    )
    # Two or three looks of the worker, one of the dispatcher, and what all do now and then.
    assert statements / seconds < 12
    # Even the supervisor keeps its connection: to open one costs far more than to ask.
    assert "CONNECTED" not in "\n".join(log.read_text().splitlines()[before[-1] : after[-1]])
    assert wake_ups / seconds < 40
    stop_all(project)
    assert verdict(project) == []
