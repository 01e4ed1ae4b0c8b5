"""One supervisor serves the databases of several backends, and none of them waits for another."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..servers.breakable import WORKER, BreakableServer
from .checker import check
from .conftest import EACH_SERVER, EVERYWHERE, MODES, MakeProject
from .harness import Project, Supervisor
from .scenarios import durations, queue, stop_all
from .storage import SQLiteFile
from .waiting import wait_for

#: Shorter than the supervisor waits for a server that does not answer, which is 3 seconds.
LEASE = {"process_heartbeat_interval": 0.3, "process_alive_threshold": 2.5}
#: Ids of jobs in the second database begin here, so that the effect log tells them apart.
FIRST_ID = 1_000_000
WEST = """
DATABASES["west"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "west.sqlite3"}
TASKS["west"] = {**TASKS["default"], "OPTIONS": {"database": "west"}}
"""


class Shards:
    """A project with a second database, ``west``, which is a file."""

    def __init__(self, project: Project, template: Path) -> None:
        self.project = project
        path = project.folder / "west.sqlite3"
        shutil.copy(template, path)
        self.west = SQLiteFile(path)
        self.west.query(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('steady_queue_jobs', ?)", FIRST_ID
        )
        self.in_west: list[int] = []

    def start(self, *arguments: str) -> Supervisor:
        """Start a supervisor, and wait for its workers, one in each database."""
        supervisor = self.project.start(*arguments)
        supervisor.wait_ready()
        wait_for(lambda: self.workers(supervisor), 20, "a worker of the west")
        return supervisor

    def enqueue(self, task: str, *calls: list[Any]) -> list[int]:
        """Enqueue in the west."""
        ids: list[int] = self.project.client.call(
            "enqueue", task=task, calls=list(calls) or [[]], backend="west"
        )
        self.in_west += ids
        return ids

    def rows(self, kind: str) -> list[tuple[Any, ...]]:
        """Return (name, pid) of the processes of a kind in the west."""
        return self.west.query("SELECT name, pid FROM steady_queue_processes WHERE kind = ?", kind)

    def workers(self, supervisor: Supervisor) -> list[int]:
        alive = supervisor.children()
        return [pid for _, pid in self.rows("worker") if pid in alive]

    def unfinished(self) -> int:
        found = self.west.query("SELECT count(*) FROM steady_queue_jobs WHERE finished_at IS NULL")
        return int(found[0][0])

    def wait_done(self, seconds: float = 40.0) -> None:
        wait_for(lambda: self.unfinished() == 0, seconds, f"the west: {self.project.logs()}")

    def found(self) -> list[str]:
        """Return what the checker finds in both databases after their processes have ended."""
        attempts = self.project.attempts()
        here, there = [], []
        for each in attempts:
            (there if each.job_id > FIRST_ID else here).append(each)
        kills = self.project.kills
        return [
            *check(self.project.enqueued, here, self.project.snapshot(), kills),
            *check(self.in_west, there, self.west.snapshot(), kills),
        ]


@pytest.fixture
def make_shards(make_project: MakeProject, template: Path) -> Any:
    def make(settings: dict[str, Any] | None = None, extra: str = "", **options: Any) -> Shards:
        project = make_project(settings or queue(processes=1), extra=WEST + extra, **options)
        return Shards(project, template)

    return make


def replace_worker(supervisor: Supervisor, workers: Callable[[], list[int]]) -> None:
    """Kill the only one of these workers, and wait for its successor."""
    [victim] = wait_for(workers, 20, "a worker")
    supervisor.send(signal.SIGKILL, victim)
    wait_for(lambda: set(workers()) - {victim}, 20, supervisor.errors())


def wait_more_starts(project: Project, count: int) -> None:
    """Wait until so many more tasks have started."""
    wanted = len(project.attempts()) + count
    wait_for(lambda: len(project.attempts()) >= wanted, 20, f"{count} starts")


@pytest.mark.parametrize("where", EVERYWHERE)
def test_one_supervisor_serves_two_databases(make_shards: Any, where: dict[str, str]) -> None:
    settings = queue(processes=1, threads=2)
    settings["backends"] = {"west": {"workers": [{"queues": "*", "threads": 5}]}}
    shards = make_shards(settings, **where)
    project, supervisor = shards.project, shards.start()
    assert len(supervisor.children()) == 4  # A worker and a dispatcher each.
    [(name, pid)] = shards.rows("supervisor")
    assert pid == supervisor.pid
    assert project.query("SELECT name FROM steady_queue_processes WHERE kind = 'supervisor'") == [
        (name,)
    ]
    said = supervisor.output()
    assert "(database 'default'" in said
    assert "(database 'west'" in said
    assert "5 threads" in said
    assert said.count("Stop with Ctrl-C") == 1
    project.enqueue("work", *durations(40, 0.02))
    shards.enqueue("work", *durations(40, 0.02))
    # Its threads run tasks at the same time.
    long = shards.enqueue("work", *[[1.0]] * 5)
    starts = [project.wait_started(job).started_at for job in long]
    assert max(starts) - min(starts) < 1e9
    project.wait_done()
    shards.wait_done()
    stop_all(project)
    assert shards.found() == []
    assert len(project.attempts()) == 85
    assert project.count("processes") == 0
    assert shards.west.query("SELECT count(*) FROM steady_queue_processes") == [(0,)]


def test_tasks_find_other_databases_as_the_project_has_set_them(make_shards: Any) -> None:
    """A worker prepares its connections to its own database alone."""
    shards = make_shards()
    project = shards.project
    shards.start()
    project.enqueue("waits_for_locks", ["default"], ["west"])
    shards.enqueue("waits_for_locks", ["west"], ["default"])
    project.wait_done()
    shards.wait_done()
    query = "SELECT return_value FROM steady_queue_jobs ORDER BY id"
    assert [value for (value,) in project.query(query)] == ["20000", "5000"]
    assert [value for (value,) in shards.west.query(query)] == ["20000", "5000"]
    stop_all(project)


@pytest.mark.thorough
def test_killed_workers_of_both_are_replaced_and_cost_only_what_they_ran(make_shards: Any) -> None:
    shards = make_shards(queue(processes=1, threads=2))
    project, supervisor = shards.project, shards.start()
    project.enqueue("work_again", *durations(200, 0.05))
    shards.enqueue("work_again", *durations(200, 0.05))
    for _ in range(3):
        for workers in (supervisor.workers, lambda: shards.workers(supervisor)):
            wait_more_starts(project, 10)
            replace_worker(supervisor, workers)
    project.wait_done()
    shards.wait_done()
    stop_all(project)
    assert shards.found() == []


@pytest.mark.thorough
def test_backend_chooses_some_of_them(make_shards: Any) -> None:
    shards = make_shards()
    project = shards.project
    supervisor = project.start("--backend", "west")
    wait_for(lambda: shards.workers(supervisor), 20, "a worker of the west")
    assert project.count("processes") == 0
    assert supervisor.stop() == 0
    supervisor = shards.start("--backend", "west, default")
    assert supervisor.stop() == 0
    wrong = project.manage("steady_queue", "--backend", "west,south")
    assert wrong.returncode == 1
    assert "'south' is no Steady Queue backend in TASKS. There are: default, west" in wrong.stderr


def test_a_database_without_workers_and_dispatchers_is_not_served(make_shards: Any) -> None:
    settings = queue(processes=1, backends={"west": {"workers": [], "dispatchers": []}})
    shards = make_shards(settings)
    supervisor = shards.project.start()
    supervisor.wait_ready()
    assert len(supervisor.children()) == 2
    assert shards.rows("supervisor") == []
    stop_all(shards.project)


@pytest.mark.parametrize("mode", MODES)
def test_a_drain_ends_when_both_are_empty(make_shards: Any, mode: str) -> None:
    """Tasks enqueue to the other database, back and forth."""
    shards = make_shards()
    project = shards.project
    project.enqueue("bounce", [12, "west"])
    supervisor = project.start("--drain", "--mode", mode)
    assert supervisor.wait_exit(60) == 0, supervisor.errors()
    assert len(project.attempts()) == 13
    assert project.unfinished() == shards.unfinished() == 0


@pytest.mark.fresh
def test_hup_and_worker_counts_concern_both(make_shards: Any) -> None:
    shards = make_shards()
    project, supervisor = shards.project, shards.start()
    before = {*supervisor.workers(), *shards.workers(supervisor)}
    [here] = project.enqueue("work", [4.0])
    [there] = shards.enqueue("work", [4.0])
    for job in (here, there):
        project.wait_started(job)
    supervisor.send(signal.SIGHUP)

    def new() -> bool:
        found = [supervisor.workers(), shards.workers(supervisor)]
        return all(set(each) - before for each in found)

    wait_for(new, 30, f"new workers: {supervisor.errors()}")
    supervisor.send(signal.SIGTTIN)
    wait_for(lambda: len(set(supervisor.workers()) - before) == 2, 20, "one more")
    wait_for(lambda: len(set(shards.workers(supervisor)) - before) == 2, 20, "one more")
    project.wait_done()
    shards.wait_done()
    wait_for(lambda: not before & set(supervisor.children()), 20, "the end of the old ones")
    stop_all(project)
    assert shards.found() == []
    assert len(project.attempts()) == 2
    assert len(shards.rows("supervisor")) == 0


@pytest.mark.thorough
@pytest.mark.fresh
def test_hup_adds_a_database_and_takes_none_away(make_shards: Any) -> None:
    shards = make_shards(extra="west = TASKS.pop('west')\n")
    project = shards.project
    supervisor = project.start()
    supervisor.wait_ready()
    path = project.folder / "project_settings.py"
    without = path.read_text()
    path.write_text(without + "\nTASKS['west'] = west\n")
    os.utime(path, (time.time() + 2, time.time() + 2))
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: shards.workers(supervisor), 30, f"a worker of the west: {supervisor.errors()}")
    path.write_text(without)
    os.utime(path, (time.time() + 4, time.time() + 4))
    supervisor.send(signal.SIGHUP)
    wait_for(
        lambda: "It would not serve all databases" in supervisor.errors(),
        30, supervisor.errors(),
    )  # fmt: skip
    assert shards.workers(supervisor)
    stop_all(project)


@pytest.fixture(params=EACH_SERVER)
def breakable(
    request: pytest.FixtureRequest, breakable_servers: dict[str, BreakableServer]
) -> Iterator[BreakableServer]:
    server = breakable_servers[request.param]
    yield server
    server.restore()


def on(server: BreakableServer, make_shards: Any) -> Shards:
    """Return a project whose default database is on that server."""
    account = f"DATABASES['default'] |= {{'USER': '{WORKER}', 'PASSWORD': ''}}\n"
    settings = queue(processes=1, threads=2, shutdown_timeout=5, **LEASE)
    shards: Shards = make_shards(settings, account, at=server.address)
    return shards


@pytest.mark.parametrize("fault", ["freeze", pytest.param("kill", marks=pytest.mark.thorough)])
def test_an_outage_of_one_database_does_not_concern_the_other(
    make_shards: Any, breakable: BreakableServer, fault: str
) -> None:
    shards = on(breakable, make_shards)
    project, supervisor = shards.project, shards.start()
    # It would declare the supervisor dead in the west if that missed its heartbeats there.
    watching = shards.start()
    project.enqueue("work", *durations(60, 0.02))
    getattr(breakable, fault)()
    began = time.monotonic()
    shards.enqueue("work_again", *durations(60, 0.02))
    shards.wait_done(10)
    # Its worker can still be replaced, though the supervisor must not fork beside a thread that
    # waits for the server.
    for _ in range(2):
        replace_worker(supervisor, lambda: shards.workers(supervisor))
        shards.enqueue("work_again", *durations(20, 0.02))
        shards.wait_done(10)
    print(f"\n{fault}: two replacements in {time.monotonic() - began:.1f} s")
    assert "declared dead" not in supervisor.errors() + watching.errors()
    breakable.thaw() if fault == "freeze" else breakable.start()
    project.wait_done(40)
    stop_all(project)
    assert shards.found() == []


def test_a_stop_during_an_outage_deregisters_in_the_other(
    make_shards: Any, breakable: BreakableServer
) -> None:
    shards = on(breakable, make_shards)
    supervisor = shards.start()
    breakable.freeze()
    shards.enqueue("work", [0.0])
    shards.wait_done(10)
    assert supervisor.stop(seconds=20) == 0
    assert shards.west.query("SELECT count(*) FROM steady_queue_processes") == [(0,)]


def test_a_database_that_is_away_at_the_start_joins_later(
    make_shards: Any, breakable: BreakableServer
) -> None:
    shards = on(breakable, make_shards)
    breakable.kill()
    supervisor = shards.project.start()
    wait_for(lambda: shards.workers(supervisor), 30, f"the west: {supervisor.errors()}")
    shards.enqueue("work", [0.0])
    shards.wait_done(10)
    breakable.start()
    supervisor.wait_ready(1, 40)
    shards.project.enqueue("work", [0.0])
    shards.project.wait_done()
    stop_all(shards.project)
    assert shards.found() == []
