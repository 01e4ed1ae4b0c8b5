"""Connections of the threads that run tasks: kept in good order, or not at all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import Context, copy_context
from threading import Thread
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from steady_queue_core.logging import RunningTask, running_task
from steady_queue_core.processes.base import connections as connections_module
from steady_queue_core.processes.base import execute_wrappers
from steady_queue_core.processes.base.connection_setup import preparing_connections
from steady_queue_core.processes.base.connections import (
    running_coroutine,
    tidy_connections,
    watch_connections,
)
from steady_queue_core.processes.worker.task_transaction import TaskTransaction

from ..models.everywhere import on_every_database

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = "steady_queue_pauses"
INSERT = f"INSERT INTO {TABLE} (queue_name, created_at) VALUES ('left', CURRENT_TIMESTAMP)"
#: Settings that a task may leave on a session, by vendor, where the driver tells of them.
SETTINGS = {
    "sqlite": ["PRAGMA query_only = ON", "PRAGMA foreign_keys = OFF"],
    "postgresql": ["SET default_transaction_read_only = on", "SET TIME ZONE 'Asia/Tokyo'"],
}


@pytest.fixture(autouse=True)
def a_task_runs() -> Iterator[None]:
    watch_connections()
    connections_module.is_shared.clear()
    # The first test of a process finds a connection that was made before.
    connection_created.send(type(connection), connection=connections["default"])
    token = running_task.set(RunningTask("shop.tasks.sell", "7", 1))
    yield
    running_task.reset(token)


def fresh(using: str) -> BaseDatabaseWrapper:
    connections[using].close()
    connections[using].ensure_connection()
    return connections[using]


def execute(using: str, *statements: str) -> Any:
    with connections[using].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


def pauses(using: str) -> int:
    return int(execute(using, f"SELECT count(*) FROM {TABLE}")[0])


def test_a_connection_in_good_order_is_kept() -> None:
    connection.ensure_connection()
    kept = connection.connection
    tidy_connections()
    assert connection.connection is kept


@pytest.mark.parametrize(
    ("age", "wanted", "asked"), [(0, False, True), (60, False, False), (None, True, True)]
)
def test_a_kept_connection_is_asked_for_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, age: int | None, wanted: bool, asked: bool
) -> None:
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", wanted)
    fresh("default")
    tidy_connections()
    looks: list[Any] = []
    monkeypatch.setattr(connection, "is_usable", lambda: looks.append(1) or True)
    for _ in range(2):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    assert len(looks) == asked


def test_a_transaction_that_was_left_open_is_dropped() -> None:
    transaction.atomic().__enter__()
    left = connection.connection
    tidy_connections()
    assert not connection.in_atomic_block
    assert connection.connection is not left


@pytest.mark.parametrize("method", ["close", "get_autocommit", "is_usable"])
def test_a_connection_that_raises_is_dropped(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("broken")

    wrapper = connections["default"]
    wrapper.ensure_connection()
    left = wrapper.connection
    wrapper.errors_occurred = True
    if method == "close":
        monkeypatch.setattr(wrapper, "is_usable", lambda: False)
    monkeypatch.setattr(wrapper, method, fail)
    tidy_connections()
    assert connection.connection is not left


@on_every_database
@pytest.mark.parametrize("statement", [INSERT, "SELECT 1"])
def test_a_transaction_of_raw_sql_is_rolled_back_and_told(
    using: str, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrapper = fresh(using)
    left = wrapper.connection
    execute(using, "BEGIN", statement)
    assert not wrapper.in_atomic_block
    tidy_connections()
    assert connections[using].connection is not left
    assert pauses(using) == 0
    [record] = caplog.records
    assert record.getMessage().startswith(
        f"Task shop.tasks.sell #7 left a transaction open on the connection to {using!r}"
    )
    assert (vars(record)["event"], vars(record)["task_id"]) == ("worker.transaction_left_open", "7")


@on_every_database
def test_what_was_committed_is_kept_and_so_is_the_connection(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = fresh(using).connection
    execute(using, "BEGIN", INSERT, "COMMIT")
    for _ in range(2):
        tidy_connections()
    assert connections[using].connection is kept
    assert pauses(using) == 1
    assert caplog.records == []


@on_every_database
def test_a_connection_that_was_closed_below_django_is_replaced(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver: Any = fresh(using).connection
    driver.close()
    tidy_connections()
    assert connections[using].connection is not driver
    assert pauses(using) == 0
    [record] = caplog.records
    assert record.getMessage().startswith("Task shop.tasks.sell #7 left a closed connection")


@on_every_database
def test_without_autocommit_nothing_uncommitted_reaches_the_next_task(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = connections.settings[using]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings, "AUTOCOMMIT", False)
        kept = fresh(using).connection
        execute(using, INSERT)
        tidy_connections()
        execute(using, "SELECT 1")
        connections[using].commit()
        tidy_connections()
        assert connections[using].connection is kept
    connections[using].close()
    assert pauses(using) == 0
    assert caplog.records == []


@on_every_database
def test_without_autocommit_the_queue_commits_what_is_its_own(using: str) -> None:
    with pytest.MonkeyPatch.context() as patch, preparing_connections(using, lambda changes: None):
        patch.setitem(connections.settings[using], "AUTOCOMMIT", False)
        execute(using, INSERT)
        connections[using].close()
    assert pauses(using) == 1


@on_every_database
def test_without_autocommit_a_transactional_task_is_committed(using: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.settings[using], "AUTOCOMMIT", False)
        fresh(using)
        assert pauses(using) == 0
        with ExitStack() as transaction:
            TaskTransaction(using)._begin(transaction)
            execute(using, INSERT)
        connections[using].close()
    assert pauses(using) == 1


@on_every_database
def test_settings_that_the_driver_tells_of_do_not_reach_the_next_task(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.worker")
    for statement in SETTINGS.get(connections[using].vendor, []):
        left = fresh(using).connection
        execute(using, statement)
        tidy_connections()
        assert connections[using].connection is not left, statement
    told = [record for record in caplog.records if "changed" in record.getMessage()]
    assert len(told) == len(SETTINGS.get(connections[using].vendor, []))


def rows_as_dicts(cursor: Any, row: Any) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


#: What a task may set on a driver's connection, by the module of its class.
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "sqlite3": {"row_factory": rows_as_dicts, "text_factory": bytes},
    "psycopg": {
        "row_factory": rows_as_dicts,
        "cursor_factory": object,
        "server_cursor_factory": object,
        "prepare_threshold": 0,
    },
    "MySQLdb": {"cursorclass": object},
    "mysql": {"raise_on_warnings": True, "use_unicode": False},
}


@on_every_database
def test_what_a_task_sets_on_its_driver_does_not_reach_the_next_one(using: str) -> None:
    driver = connections[using].Database.__name__.partition(".")[0]
    for name, value in ATTRIBUTES[driver].items():
        left = fresh(using).connection
        setattr(left, name, value)
        tidy_connections()
        assert connections[using].connection is not left, name
        assert pauses(using) == 0


@pytest.mark.django_db(databases=["postgres"], transaction=True)
def test_a_role_without_the_rights_of_the_user_does_not_reach_the_next_task() -> None:
    left = fresh("postgres").connection
    execute("postgres", "SET ROLE pg_monitor")
    tidy_connections()
    assert connections["postgres"].connection is not left


def look(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    return execute(sql, params, many, context)


def watch(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
    """A receiver of the project that watches each connection."""
    if look not in connection.execute_wrappers:
        connection.execute_wrappers.append(look)


def test_a_wrapper_of_another_thread_ends_with_its_block() -> None:
    """A request begins without a connection: ours is added within the project's block."""
    found: list[list[Any]] = []

    def serve() -> None:
        for _ in range(3):
            connection.close()
            with connection.execute_wrapper(look), connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            found.append(list(connection.execute_wrappers))
        connection.close()

    thread = Thread(target=serve)
    thread.start()
    thread.join()
    assert look not in found[-1]
    assert found[0] == found[-1]


@pytest.mark.parametrize("opened", [False, True], ids=["new", "open"])
def test_wrappers_of_a_task_do_not_reach_the_next_one(
    opened: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.worker")
    usual = list(fresh("default").execute_wrappers)
    if not opened:
        connection.close()
    connection.execute_wrappers.append(look)
    left = connections["default"]
    execute("default", "SELECT 1")
    tidy_connections()
    assert connections["default"] is not left
    assert fresh("default").execute_wrappers == usual
    [record] = caplog.records
    assert record.getMessage().startswith("Task shop.tasks.sell #7 changed execute_wrappers on")


def test_a_wrapper_is_not_left_in_a_thread_that_has_asked_nothing() -> None:
    found: list[list[Any]] = []

    def work() -> None:
        connection.execute_wrappers.append(look)
        tidy_connections()
        found.append(list(connection.execute_wrappers))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[]]


def leave_wrapper_open(using: str) -> BaseDatabaseWrapper:
    """Begin a transaction on a connection that Django does not know any more."""
    left = fresh(using)
    transaction.atomic(using=using).__enter__()
    execute(using, INSERT)
    del connections[using]
    return left


def leave_own_open(using: str) -> BaseDatabaseWrapper:
    """Begin one on a connection that the task has made for itself."""
    left = connections.create_connection(using)
    with left.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(INSERT)
    return left


@on_every_database
@pytest.mark.parametrize("leave", [leave_wrapper_open, leave_own_open])
def test_a_transaction_is_rolled_back_though_django_does_not_know_its_connection(
    using: str, leave: Callable[[str], BaseDatabaseWrapper], caplog: pytest.LogCaptureFixture
) -> None:
    left = leave(using)
    try:
        tidy_connections()
        assert left.connection is None
    finally:
        left.close()
    assert pauses(using) == 0
    [record] = caplog.records
    assert record.getMessage().startswith("Task shop.tasks.sell #7 left a transaction open on the")


def test_a_connection_that_a_task_keeps_for_itself_stays_open() -> None:
    own = connections.create_connection("default")
    try:
        own.ensure_connection()
        tidy_connections()
        assert own.connection is not None
    finally:
        own.close()


def test_wrappers_that_each_connection_gets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute_wrappers, "_lasting", {})
    connection_created.connect(watch)
    try:
        kept = fresh("default")
        tidy_connections()
        assert connections["default"] is kept
        assert kept.connection is not None
        connection.execute_wrappers.append(lambda execute, *args: execute(*args))
        tidy_connections()
        assert connections["default"] is not kept
    finally:
        connection_created.disconnect(watch)
        del connections["default"]


@on_every_database
@pytest.mark.parametrize("is_in_context", [True, False])
def test_what_is_left_in_a_thread_of_an_executor_reaches_nothing_else_there(
    using: str, is_in_context: bool, caplog: pytest.LogCaptureFixture
) -> None:
    run = copy_context().run if is_in_context else Context().run
    with ThreadPoolExecutor(1) as pool:
        for leave in (
            lambda: execute(using, "BEGIN", INSERT),
            lambda: transaction.atomic(using).__enter__() or execute(using, INSERT),
            lambda: connections[using].ensure_connection() or connections[using].connection.close(),
        ):
            pool.submit(run, leave).result()
            assert pool.submit(run, pauses, using).result() == 0
            pool.submit(run, execute, using, INSERT).result()
            assert pauses(using) == 1
            execute(using, f"DELETE FROM {TABLE}")
        # Nobody knows how many threads there are: as after a request of Django's, none is kept.
        assert pool.submit(lambda: is_open(connections[using])).result() is False
    who = "Task shop.tasks.sell #7" if is_in_context else "The thread "
    [first, second, third] = [record.getMessage() for record in caplog.records]
    assert first.startswith(who)
    assert "left a transaction open" in first
    assert "left a transaction open" in second
    assert "left a closed connection" in third


def test_a_transaction_of_a_running_coroutine_ends_with_its_work_in_a_thread() -> None:
    task = RunningTask("shop.tasks.sell", "7", 1)
    with ThreadPoolExecutor(1) as pool, running_coroutine(task):
        pool.submit(copy_context().run, execute, "default", "BEGIN", INSERT).result()
        assert pool.submit(pauses, "default").result() == 0


def test_connections_of_threads_that_have_ended_are_closed() -> None:
    left: list[Any] = []

    def connect() -> None:
        connection.ensure_connection()
        left.append(connections["default"])

    thread = Thread(target=connect)
    thread.start()
    thread.join()
    assert left[0].connection is not None
    tidy_connections()
    assert left[0].connection is None


def test_threads_of_others_in_the_process_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections_module, "is_shared", threading.Event())
    connections_module.is_shared.set()
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(Context().run, execute, "default", "SELECT 1").result()
            tidy_connections()
            assert pool.submit(lambda: is_open(connections["default"])).result() is True
        finally:
            pool.submit(connections.close_all).result()


def is_open(wrapper: BaseDatabaseWrapper) -> bool:
    return wrapper.connection is not None


@on_every_database
def test_each_task_can_have_a_connection_of_its_own(using: str) -> None:
    left = fresh(using).connection
    tidy_connections(fresh=True)
    assert connections[using].connection is None
    fresh(using)
    assert connections[using].connection is not left


@pytest.mark.django_db(databases=["postgres"], transaction=True)
@pytest.mark.parametrize(
    "leave",
    [
        lambda wrapper: transaction.atomic(using=wrapper.alias).__enter__(),
        lambda wrapper: execute(wrapper.alias, "BEGIN"),
        lambda wrapper: execute(wrapper.alias, "SET TIME ZONE 'Asia/Tokyo'"),
        lambda wrapper: wrapper.connection.close(),
    ],
    ids=["atomic", "raw", "setting", "closed"],
)
def test_a_pool_gets_its_places_back_and_no_session_with_leavings(
    leave: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = {"min_size": 0, "max_size": 1, "timeout": 10}
    connections["postgres"].close()
    monkeypatch.setitem(connections.settings["postgres"], "OPTIONS", {"pool": pool})
    try:
        first = execute("postgres", "SELECT pg_backend_pid()")
        tidy_connections()
        # A session in good order goes back, and is handed out again.
        assert execute("postgres", "SELECT pg_backend_pid()") == first
        leave(connections["postgres"])
        tidy_connections()
        assert execute("postgres", "SELECT pg_backend_pid()") != first
    finally:
        connections["postgres"].close()
        connections["postgres"].close_pool()
