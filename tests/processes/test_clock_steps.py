"""The clock of the database's server is set forward while processes work."""

from __future__ import annotations

import signal
from typing import cast

import pytest

from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import queue, registered, stop_all, wait_pruned
from .storage import ServerDatabase
from .waiting import wait_for

LEASE = {"process_heartbeat_interval": 1, "process_alive_threshold": 3}
#: The dead are looked for soon after the start.
SOON = """
from steady_queue_core.processes.supervisor import maintenance
maintenance.HEARTBEAT_GRACE = 0.5"""
#: Was on a host that is lost.
LOST = """
INSERT INTO steady_queue_processes
  (kind, name, pid, hostname, metadata, created_at, last_heartbeat_at)
VALUES ('worker', 'lost', 1, 'elsewhere', '{}', now(), now() - interval '1 hour')"""
#: A clock that stands before the server's own in the search path of new sessions.
SCHEMA = """
CREATE SCHEMA stepped;
CREATE TABLE stepped.clock AS SELECT interval '0' AS step;
CREATE FUNCTION stepped.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
  AS 'SELECT pg_catalog.statement_timestamp() + step FROM stepped.clock';
ALTER DATABASE "{name}" SET search_path = stepped, pg_catalog, public"""


def step_forward(project: Project) -> None:
    """Set the clock forward, and wait until each process has sent a heartbeat by it."""
    before = project.query("SELECT id FROM steady_queue_processes ORDER BY id")
    project.query("UPDATE stepped.clock SET step = step + interval '1 hour'")
    old = "SELECT 1 FROM steady_queue_processes WHERE last_heartbeat_at < "
    since = "(SELECT statement_timestamp() - interval '10 minutes')"
    wait_for(lambda: not project.query(old + since), 10, "heartbeats by the new clock")
    assert project.query("SELECT id FROM steady_queue_processes ORDER BY id") == before


@pytest.mark.server("postgres")
def test_a_step_forward_costs_nothing_and_the_dead_are_found(make_project: MakeProject) -> None:
    modules = ["tests.faultapp.patient", "soon"]
    options = queue(processes=2, task_modules=modules, **LEASE)
    options["dispatchers"][0]["concurrency_maintenance_interval"] = 0.5
    project = make_project(options, on="postgres", files={"soon.py": SOON})
    for statement in SCHEMA.split(";"):
        project.query(statement.format(name=cast(ServerDatabase, project.storage).address.name))
    first, second = project.start(), project.start()
    for supervisor in (first, second):
        supervisor.wait_ready(2)
    project.query(LOST)
    wait_for(lambda: project.count("processes") == 8, 10, "a round that looks for the dead")
    [alone, waiting] = project.enqueue("patient:stay_alone", [60.0], [0.0])
    project.wait_started(alone)
    for _ in range(3):
        step_forward(project)
    assert project.state_of(waiting) == "blocked"
    assert [each.job_id for each in project.attempts()] == [alone]
    lose(project, second)
    assert first.stop(signal.SIGQUIT) == 0
    stop_all(project)


def lose(project: Project, supervisor: Supervisor) -> None:
    """Freeze all of a supervisor, and wait until another one has rescued its jobs."""
    supervisor.send_tree(signal.SIGSTOP)
    assert registered(project, supervisor.pid)
    wait_pruned(project, supervisor.pid)
    supervisor.send_tree(signal.SIGKILL)
    supervisor.process.wait()
