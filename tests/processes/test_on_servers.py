"""The promises of a kill and of a stop hold on every database that has row locks."""

from __future__ import annotations

import re
import signal
from contextlib import closing, suppress
from typing import cast

import pytest

from steady_queue_mysql.session import LOCK_WAIT

from ..servers import client
from ..servers.kinds import KINDS
from .conftest import MakeProject
from .scenarios import durations, queue, refusal, stop_all, verdict, wait_pruned
from .storage import ServerDatabase
from .waiting import wait_for

JOBS = 300

on_each_server = pytest.mark.parametrize(
    "server",
    [pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS],
)


@on_each_server
def test_killed_workers_cost_only_the_jobs_that_they_were_running(
    make_project: MakeProject, server: str
) -> None:
    project = make_project(queue(processes=2, threads=1), on=server)
    supervisor = project.start()
    supervisor.wait_ready(2)
    project.enqueue("work", *durations(JOBS // 2, 0.02))
    project.enqueue("work_again", *durations(JOBS // 2, 0.02, seed=2))
    for share in (1, 2):
        wait_for(lambda share=share: len(project.attempts()) > JOBS // 3 * share, 30, "some starts")
        assert supervisor.send(signal.SIGKILL, supervisor.wait_ready(1)[0])
    project.wait_done(60)
    stop_all(project)
    assert verdict(project, threads=1) == []
    assert project.count("claimed_executions") == project.count("processes") == 0


@on_each_server
def test_a_stop_under_load_repeats_nothing_and_fails_nothing(
    make_project: MakeProject, server: str
) -> None:
    project = make_project(queue(processes=2, threads=2), on=server)
    first = project.start()
    first.wait_ready(2)
    project.enqueue("work", *durations(JOBS, 0.04))
    wait_for(lambda: len(project.attempts()) > JOBS // 3, 30, "some starts")
    assert first.stop() == 0
    assert project.count("ready_executions") == project.unfinished() > 0
    second = project.start()
    project.wait_done(60)
    assert second.stop() == 0
    assert verdict(project) == []
    assert len(project.attempts()) == JOBS
    assert project.count("processes") == 0


#: A claim of the next job that nobody sees yet: another one of the same job waits for its end.
CLAIM = """
INSERT INTO steady_queue_claimed_executions
  (job_id, process_id, token, queue_name, "rank", created_at)
VALUES (%s, 0, 0, 'default', 0, now())"""
#: Transactions are the whole server's.
WAITING = """
SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'transactionid' AND NOT granted AND datname = current_database()"""


@pytest.mark.server("postgres")
def test_a_claim_that_a_killed_worker_had_under_way_costs_no_attempt(
    make_project: MakeProject,
) -> None:
    """The server does not see that its client is gone, and ends the statement all the same."""
    lease = {"process_heartbeat_interval": 1, "process_alive_threshold": 8}
    project = make_project(queue(processes=1, threads=1, **lease), on="postgres")
    supervisor = project.start()
    [job] = project.enqueue("work")
    project.wait_done(30)
    address = cast(ServerDatabase, project.storage).address
    with (
        closing(client.connect(address, address.name)) as connection,
        closing(connection.cursor()) as cursor,
    ):

        def has_claimed_too_late() -> bool:
            """Kill the worker while its claim waits for us; whether that is committed then."""
            nonlocal job
            [killed] = supervisor.wait_ready(1)
            cursor.execute("BEGIN")
            cursor.execute(CLAIM, [job + 1])
            job += 1
            assert project.enqueue("work") == [job]
            wait_for(lambda: project.query(WAITING), 20, "a claim that waits")
            supervisor.send(signal.SIGKILL, killed)
            with suppress(AssertionError):  # The claim itself waits for two seconds at most.
                wait_pruned(project, killed, seconds=1.5)
            cursor.execute("ROLLBACK")
            project.wait_done(90)
            return "more jobs without starting them" in supervisor.errors()

        wait_for(has_claimed_too_late, 90, "a claim by a process that is not registered")
    stop_all(project)
    assert verdict(project) == []
    jobs = project.snapshot().jobs.values()
    assert {(row.states, row.attempts) for row in jobs} == {(("finished",), 1)}


@on_each_server
def test_a_server_too_old_is_refused_by_name(make_project: MakeProject, server: str) -> None:
    package = "postgres" if server == "postgres" else "mysql"
    project = make_project(queue(), extra=NEWER.format(package=package), on=server)
    message = refusal(project)
    assert "Upgrade the server" in message
    assert KINDS[server].title in message


@on_each_server
def test_the_banner_names_the_server_and_what_is_set_there(
    make_project: MakeProject, server: str
) -> None:
    project = make_project(queue(processes=1), on=server)
    supervisor = project.start()
    supervisor.wait_ready(1)
    version = str(
        project.query("SHOW server_version" if server == "postgres" else "SELECT version()")
    )
    number = re.search(r"\d+(\.\d+)+", version)
    assert number is not None
    told = supervisor.output()
    assert f": the server is {KINDS[server].title} {number[0]}\n" in told
    setting = (
        "lock_timeout = " if server == "postgres" else f"wait up to {LOCK_WAIT} s for row locks\n"
    )
    assert told.count(": the queue's own ") == told.count(setting) == 1


#: What the dialects ask for, raised beyond all servers that there are, but not for migrations.
NEWER = """
import sys

if "steady_queue" in sys.argv:
    if "{package}" == "postgres":
        from steady_queue_postgres import session as ours
        ours.MINIMUM_VERSION = 99
    else:
        from steady_queue_mysql import server as ours
        ours.MINIMUM_MYSQL = ours.MINIMUM_MARIADB = (99, 0)
"""
