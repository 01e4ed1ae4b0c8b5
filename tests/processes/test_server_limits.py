"""What an administrator limits (connections, times, isolation, writing) is waited out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from ..servers import client
from ..servers.breakable import WORKER, BreakableServer
from .conftest import EACH_SERVER, MakeProject
from .plant import AS_WORKER, PROCESSES, Plant
from .scenarios import stop_all
from .schedules import scheduled, slots, wait_slots
from .waiting import wait_for

JOBS = 150


@contextmanager
def settings(plant: Plant, values: dict[str, str]) -> Iterator[None]:
    """Have the server give new sessions these settings, and let there be no old ones."""
    server = plant.server
    if server.is_postgres:
        setting = f"ALTER ROLE {WORKER} SET {{}} = {{}}"
        before = dict.fromkeys(values, "DEFAULT")
    else:
        setting = "SET GLOBAL {} = {}"
        before = {}
        for name in values:
            [(value,)] = server.ask(f"SELECT @@GLOBAL.{name}")
            before[name] = repr(value) if isinstance(value, str) else str(value)
    try:
        for name, value in values.items():
            server.ask(setting.format(name, value))
        server.end_sessions()
        yield
    finally:
        for name, value in before.items():
            server.ask(setting.format(name, value))
        server.end_sessions()


def full_server(plant: Plant) -> AbstractContextManager[Any]:
    """Let there be no connection left for the project."""
    return plant.server.fill()


@contextmanager
def read_only_server(plant: Plant) -> Iterator[None]:
    """As after a failover, while the old address leads to a replica."""
    server = plant.server
    if server.is_postgres:
        with settings(plant, {"default_transaction_read_only": "on"}):
            yield
        return
    server.ask(f"SET GLOBAL {'read_only' if server.is_mariadb else 'super_read_only'} = 1")
    try:
        yield
    finally:
        server.ask("SET GLOBAL read_only = 0")


@contextmanager
def unprivileged(plant: Plant) -> Iterator[None]:
    """Claims cannot be moved, while everything can be read."""
    server, name = plant.server, plant.project.storage.address.name
    if server.is_postgres:
        what, whom = f"{name}.public.steady_queue_ready_executions", WORKER
    else:
        what, whom = r"`steady\_queue\_%`.*", f"{WORKER}@'%'"
    with closing(client.connect(server.address, name)) as session, closing(session.cursor()) as do:
        do.execute(f"REVOKE DELETE ON {what} FROM {whom}")
        server.end_sessions()
        try:
            yield
        finally:
            do.execute(f"GRANT DELETE ON {what} TO {whom}")
            server.end_sessions()


@pytest.mark.parametrize(
    ("fault", "words", "checked"),
    [
        pytest.param(
            full_server, "many connections", "many connections", marks=pytest.mark.thorough
        ),
        (read_only_server, "read", "is read-only"),
        (unprivileged, "denied", "DELETE on steady_queue_ready_executions"),
    ],
    ids=["full", "read-only", "unprivileged"],
)
def test_a_server_that_refuses_is_waited_for(
    plant: Plant, fault: Callable[[Plant], Any], words: str, checked: str
) -> None:
    plant.enqueue(JOBS, longest=0.12)
    plant.wait_attempts(JOBS // 10)
    with fault(plant):
        plant.wait_said(words)
        plant.said()
        assert checked in plant.check()
        plant.require_few_words(2 * PROCESSES)
    plant.require_all_done()
    plant.wait_said("is available again")


@pytest.mark.parametrize("alias", EACH_SERVER)
@pytest.mark.thorough
def test_a_server_that_only_reads_is_told_of_once_and_then_left(
    alias: str, breakable_servers: dict[str, BreakableServer], make_project: MakeProject
) -> None:
    """As after a failover, with stock leases: most of what the processes ask is read meanwhile.

    Old connections lead to what is a standby now, new ones elsewhere.
    """
    server, setting = breakable_servers[alias], "default_transaction_read_only"
    project = scheduled(make_project, at=server.address, extra=AS_WORKER)
    supervisor = project.start()
    wait_slots(project, 1)
    if server.is_postgres:
        server.ask(f"ALTER ROLE {WORKER} SET {setting} = on")
        server.end_sessions()
    else:
        server.ask(f"SET GLOBAL {'read_only' if server.is_mariadb else 'super_read_only'} = 1")
    try:
        wait_for(
            lambda: "read" in supervisor.errors().partition("unavailable")[2], 20, "word of it"
        )
        time.sleep(6.0)  # For many that would tell of it again.
        told = supervisor.errors()
    finally:
        if server.is_postgres:
            # The sessions that there are stay as they are.
            server.ask(f"ALTER ROLE {WORKER} SET {setting} = DEFAULT")
        else:
            server.ask("SET GLOBAL read_only = 0")
    assert told.count("unavailable") <= 3 * PROCESSES, told
    assert told.count("available again") <= PROCESSES, told
    wait_slots(project, len(slots(project)) + 1)
    stop_all(project)


POSTGRES_TIMES = {
    "statement_timeout": "'150ms'",
    "lock_timeout": "'100ms'",
    "idle_in_transaction_session_timeout": "'150ms'",
    "idle_session_timeout": "'300ms'",
}
MYSQL_TIMES = {"max_execution_time": "150", "innodb_lock_wait_timeout": "1", "wait_timeout": "1"}
MARIADB_TIMES = {
    "max_statement_time": "0.15",
    "innodb_lock_wait_timeout": "1",
    "wait_timeout": "1",
    "idle_transaction_timeout": "1",
}
LOCK_ALL = {
    True: "LOCK TABLE steady_queue_jobs",
    False: "SELECT count(*) FROM steady_queue_jobs FOR UPDATE",
}


@pytest.mark.thorough
def test_tight_time_limits_end_nothing(plant: Plant) -> None:
    """While somebody holds locks longer than they allow, and while there is nothing to do."""
    server, project = plant.server, plant.project
    times = POSTGRES_TIMES if server.is_postgres else MYSQL_TIMES
    if server.is_mariadb:
        times = MARIADB_TIMES
    session = client.connect(server.address, project.storage.address.name)
    with closing(session), closing(session.cursor()) as cursor, settings(plant, times):
        plant.enqueue(JOBS)
        cursor.execute("BEGIN")
        cursor.execute(LOCK_ALL[server.is_postgres])
        if cursor.description:
            cursor.fetchall()
        time.sleep(1.2)
        cursor.execute("ROLLBACK")
        project.enqueue("work", [0.0], delay=0.5)
        plant.require_all_done()
        plant.require_few_words(8 * PROCESSES)
        time.sleep(2)
        plant.require_few_words(PROCESSES)
        plant.enqueue(20)
        plant.require_all_done()


@pytest.mark.thorough
def test_any_isolation_level_will_do(plant: Plant) -> None:
    """As the server's default, for workers, tasks and whoever enqueues."""
    for level in ("serializable", "repeatable read"):
        if plant.server.is_postgres:
            values = {"default_transaction_isolation": f"'{level}'"}
        else:
            variable = "tx_isolation" if plant.server.is_mariadb else "transaction_isolation"
            values = {variable: f"'{level.upper().replace(' ', '-')}'"}
        with settings(plant, values):
            client = plant.project.new_client()
            try:
                client.begin("write_like_a_web_process", seconds=0.6, pause=0.005, work=0.01)
                plant.enqueue(JOBS)
                written = client.finish()
            finally:
                client.close()
            plant.project.enqueued += written["ids"]
            assert written["ids"]  # How many depends on what else the machine does.
            assert written["errors"] == []
            plant.require_all_done()
