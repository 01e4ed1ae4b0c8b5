"""Statistics of real workers: what was counted is what has happened."""

from __future__ import annotations

import signal
import time

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import queue, stop_all, with_constants
from .waiting import wait_for

#: Counts that are stored each second, not each ten.
OFTEN = with_constants(statistics__collector__INTERVAL=1.0)


def counted(project: Project, *columns: str) -> tuple[int, ...]:
    # By one statement: they are stored together.
    sums = ", ".join(
        f"COALESCE(SUM(CASE WHEN span = {span} THEN {column} ELSE 0 END), 0)"
        for span in (1, 0) for column in columns
    )  # fmt: skip
    [found] = project.query(f"SELECT {sums} FROM steady_queue_statistics")
    minutes, all_time = found[: len(columns)], found[len(columns) :]
    assert minutes == all_time
    return tuple(map(int, minutes))


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_stop_leaves_nothing_uncounted(make_project: MakeProject, where: dict[str, str]) -> None:
    project = make_project(queue(processes=2, threads=3), **where)
    supervisor = project.start()
    supervisor.wait_ready(2)
    jobs = project.enqueue("work", *[[0.001]] * 300) + project.enqueue("awork", [0.05])
    broken = project.enqueue("fail_with", ["LookupError", "no"])
    project.wait_done()
    wait_for(lambda: project.count("samples") > 0, 10, "a sample")
    assert supervisor.stop() == 0
    assert counted(project, "finished", "failed", "enqueued") == (
        len(jobs), len(broken), len(jobs) + len(broken),
    )  # fmt: skip
    assert counted(project, "retried", "lost") == (0, 0)
    [(longest, waited)] = project.query(
        "SELECT MAX(run_max), MAX(wait_max) FROM steady_queue_statistics"
    )
    assert 40 <= longest < 20_000
    assert waited < 60_000
    tasks = project.query("SELECT DISTINCT task_path FROM steady_queue_statistics ORDER BY 1")
    assert [path.rpartition(".")[2] for (path,) in tasks] == ["awork", "fail_with", "work"]


def test_a_kill_counts_nothing_twice_and_loses_seconds(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2, threads=2), extra=OFTEN)
    supervisor = project.start()
    workers = supervisor.wait_ready(2)
    early = project.enqueue("work", *[[0.0]] * 100)
    project.wait_done()
    wait_for(lambda: counted(project, "finished") == (len(early),), 30, "their counts")
    [job] = project.enqueue("work_again", [3.0])
    supervisor.send(signal.SIGKILL, project.wait_started(job).pid)
    project.wait_started(job, times=2)
    project.wait_done()
    later = project.enqueue("work", *[[0.0]] * 50)
    project.wait_done()
    stop_all(project)
    assert len(workers) == 2
    finished, lost = counted(project, "finished", "lost")
    # The killed worker had nothing of the last seconds but the job that it lost.
    assert finished == len(early) + 1 + len(later)
    assert lost == 1


def test_a_table_that_is_missing_is_told_once_and_jobs_go_on(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=2), extra=OFTEN)
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    [first] = wait_for(lambda: dispatchers(project), 10, "a dispatcher")
    project.query("ALTER TABLE steady_queue_statistics RENAME TO away")
    # It may have looked at the table already, and would not again for minutes.
    supervisor.send(signal.SIGKILL, first)
    [second] = wait_for(lambda: dispatchers(project) - {first}, 30, "another dispatcher")
    project.enqueue("work", *[[0.0]] * 20)
    project.wait_done()

    def told() -> list[int]:
        lines = [line for line in supervisor.errors().splitlines() if "statistics" in line]
        assert all("no such table" in line for line in lines)
        return [int(line.split()[2]) for line in lines]

    wait_for(lambda: {worker, second} <= {*told()}, 30, "the warnings of both")
    project.enqueue("work", *[[0.0]] * 20)
    project.wait_done()
    assert supervisor.stop() == 0
    assert len(told()) == len({*told()})
    assert {*told()} - {first} == {worker, second}
    assert "is unavailable" not in supervisor.errors()


def dispatchers(project: Project) -> set[int]:
    rows = project.query("SELECT pid FROM steady_queue_processes WHERE kind = 'dispatcher'")
    return {pid for (pid,) in rows}


def test_an_outage_keeps_the_counts(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=2), extra=OFTEN)
    supervisor = project.start()
    supervisor.wait_ready()
    project.enqueue("work", *[[0.0]] * 20)
    project.wait_done()
    with project.write_lock():
        time.sleep(2)  # The counts become due, and cannot be stored.
        assert counted(project, "finished") == (0,)
    wait_for(lambda: counted(project, "finished") == (20,), 30, "the counts")
    stop_all(project)
    assert counted(project, "finished") == (20,)


def test_statistics_may_be_switched_off(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, statistics=False))
    supervisor = project.start()
    supervisor.wait_ready()
    project.enqueue("work", *[[0.0]] * 20)
    project.wait_done()
    stop_all(project)
    assert project.count("statistics") == project.count("samples") == 0
