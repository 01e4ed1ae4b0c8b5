"""Keeps the database connections of task threads from one task to the next, in a clean state."""

from __future__ import annotations

import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ...logging import RunningTask, running_task
from .driver_state import is_closed, is_in_transaction, settings_of
from .execute_wrappers import add_wrapper, has_left_wrappers
from .session_logs import log_broken, log_changed, log_closed, log_left_open
from .thread_roles import is_own, serves_all_coroutines, work_of_thread

#: ``work``: the latest piece of work after which the connections of the current thread are tidied
#: up, if it is a thread of an executor. ``opened``: the connections that the thread has opened.
_served = threading.local()
#: Set where the process has other work than the queue's, and tasks are told by their context.
is_shared = threading.Event()
#: Set where a task never gets a connection that another one has used.
_wants_fresh = threading.Event()
#: Set when another thread, such as those of sync_to_async(), has connected to a database.
_served_coroutines = threading.Event()
#: Set while a call waits for such a thread, to tidy up after all that have ended by then.
_waits_to_tidy = threading.Event()
#: The connections that were opened, of all threads.
_opened: WeakSet[BaseDatabaseWrapper] = WeakSet()
_opening = threading.Lock()
#: Those that were opened by tasks, in threads that are not the queue's.
_elsewhere: set[ref[BaseDatabaseWrapper]] = set()
#: The session settings of each connection when it was opened.
_first_settings: WeakKeyDictionary[BaseDatabaseWrapper, dict[str, object]] = WeakKeyDictionary()
#: Running coroutine tasks: they share the connections of one thread.
_coroutines: set[RunningTask] = set()
#: The task that has opened a transaction by a statement of its own, for each connection.
_openers: WeakKeyDictionary[BaseDatabaseWrapper, RunningTask | None] = WeakKeyDictionary()


def tidy_connections(*, fresh: bool = False) -> None:
    """Remove all traces of a task from the calling thread's connections.

    A connection is kept unless the task left it in a transaction, closed or with other settings,
    it is broken, past its ``CONN_MAX_AGE`` or from a pool, or ``fresh`` connections are wanted.
    Django checks its health before the next task's first query if ``CONN_HEALTH_CHECKS`` says so,
    or if a request would have opened a new connection.

    Of a connection that Django does not know, because the task has made it for itself or has taken
    it away, only a transaction that was left open is ended.
    """
    if _elsewhere:
        _close_of_ended_threads()
    # Also in a thread that has never connected: a wrapper may be left where nothing is asked.
    known = connections.all(initialized_only=True)
    for connection in known:
        connection.queries_log.clear()  # With DEBUG, as Django does for each request.
        _attempt(partial(_tidy, connection, fresh), connection)
    for each in tuple(getattr(_served, "opened", ())):
        opened = each()
        if opened is not None and opened not in known and opened.connection is not None:
            _attempt(partial(_end_transaction, opened), opened)


def _attempt(tidy: Callable[[], None], connection: BaseDatabaseWrapper) -> None:
    try:
        tidy()
    except Exception as error:
        log_broken(connection, error)
        _drop(connection)


def close_own_connections() -> None:
    """Close the connections of the calling thread before it ends."""
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()


@contextmanager
def running_coroutine(task: RunningTask) -> Iterator[None]:
    """Protect transactions that this task opens from the clean-up after other tasks."""
    _coroutines.add(task)
    try:
        yield
    finally:
        _coroutines.discard(task)


def has_to_atidy() -> bool:
    """Whether there may be something to tidy that no call waits to tidy already."""
    return _served_coroutines.is_set() and not _waits_to_tidy.is_set()


async def atidy_connections(*, fresh: bool = False) -> None:
    """Async version of :func:`tidy_connections`, for the thread that runs coroutines' queries."""
    if has_to_atidy():
        _waits_to_tidy.set()
        try:
            # The task is over: neither a late cancellation nor the end of that thread matters.
            with suppress(CancelledError, RuntimeError):
                await sync_to_async(_tidy_in_turn)(fresh=fresh)
        finally:
            _waits_to_tidy.clear()


def _tidy_in_turn(*, fresh: bool) -> None:
    # First: what ends from now on may have been looked at already.
    _waits_to_tidy.clear()
    tidy_connections(fresh=fresh)


def connections_of(thread: int) -> list[BaseDatabaseWrapper]:
    """Return the connections that the thread of this identifier has opened."""
    with _opening:
        return [each for each in _opened if getattr(each, "_thread_ident", None) == thread]


def watch_connections(*, fresh: bool = False) -> None:
    """Record the settings of each new connection, and whether it serves coroutines. Those that
    tasks open in threads of executors are tidied up after each piece of work there, and are not
    kept if ``fresh`` ones are wanted."""
    if fresh:
        _wants_fresh.set()
    connection_created.connect(_note_connection, dispatch_uid="steady_queue_note_connection")


def _note_connection(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
    with _opening:
        _opened.add(connection)
    if not _is_of_others():
        opened: set[ref[BaseDatabaseWrapper]] = _served.__dict__.setdefault("opened", set())
        opened.add(ref(connection, opened.discard))
    if not is_own(threading.current_thread()):
        _served_coroutines.set()
        _openers[connection] = None
        _tidy_after_work(connection)
        add_wrapper(connection, _note_opener)
    with suppress(Exception):  # Settings that the driver does not report are not restored.
        _first_settings[connection] = settings_of(connection)


def _note_opener(
    execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    if str(sql).lstrip()[:5].upper() in ("BEGIN", "START"):
        _openers[context["connection"]] = running_task.get()
    _tidy_after_work(context["connection"])
    return execute(sql, params, many, context)


def _tidy_after_work(connection: BaseDatabaseWrapper) -> None:
    """Tidy up once the calling thread has done its present piece of work, if that is a task's."""
    if _is_of_others() or serves_all_coroutines():
        return
    if ref(connection) not in _elsewhere:
        with _opening:
            _elsewhere.add(ref(connection, _elsewhere.discard))
    present: Future[Any] | None = getattr(_served, "work", None)
    if present is not None and not present.done():
        return
    _served.work = work_of_thread()
    if _served.work is not None:
        context, fresh = copy_context(), _wants_fresh.is_set()
        _served.work.add_done_callback(lambda work: context.run(tidy_connections, fresh=fresh))


def _is_of_others() -> bool:
    """Whether it is not for a task that the calling thread works, in a process of others."""
    return is_shared.is_set() and running_task.get() is None


def _close_of_ended_threads() -> None:
    alive = {thread.ident for thread in threading.enumerate()}
    with _opening:
        known = [connection for each in _elsewhere.copy() if (connection := each()) is not None]
        ended: list[Any] = [each for each in known if _thread_of(each) not in alive]
        _elsewhere.difference_update(map(ref, ended))
    for connection in ended:
        with suppress(Exception):
            connection._close()
        connection.connection = None


def _thread_of(connection: Any) -> int:
    return int(connection._thread_ident)


def _tidy(connection: BaseDatabaseWrapper, fresh: bool) -> None:
    if _is_in_use(connection):
        return
    if connection.in_atomic_block or connection.closed_in_transaction:
        if connection.in_atomic_block:
            log_left_open(connection, running_task.get())
        _drop(connection)
    elif has_left_wrappers(connection):
        log_changed(connection, ["execute_wrappers"])
        _drop(connection)
    elif connection.connection is None:
        return
    elif is_closed(connection):
        log_closed(connection)
        _drop(connection)
    elif is_in_transaction(connection):
        if not connection.settings_dict["AUTOCOMMIT"]:
            connection.rollback()  # It is always in one; the task has committed its own changes.
            return
        log_left_open(connection, _openers.get(connection) or running_task.get())
        _drop(connection)
    elif fresh or _was_changed(connection):
        _drop(connection)
    elif _is_used_up(connection):
        connection.close()
    else:
        _plan_health_check(connection)


def _end_transaction(connection: BaseDatabaseWrapper) -> None:
    """End what a task has left open on a connection that is not Django's."""
    is_shared_by_threads = connection.allow_thread_sharing
    if _is_in_use(connection) or is_shared_by_threads or not connection.settings_dict["AUTOCOMMIT"]:
        return
    if connection.in_atomic_block or is_in_transaction(connection):
        log_left_open(connection, _openers.get(connection) or running_task.get())
        _drop(connection)


def _is_in_use(connection: BaseDatabaseWrapper) -> bool:
    """Whether a coroutine that goes on has a transaction there."""
    return _openers.get(connection) in _coroutines and ref(connection) not in _elsewhere


def _was_changed(connection: BaseDatabaseWrapper) -> bool:
    first = _first_settings.get(connection)
    if first is None:
        return False
    settings = settings_of(connection)
    changed = [name for name in first if settings.get(name) != first[name]]
    if changed:
        log_changed(connection, changed)
    return bool(changed)


def _is_used_up(connection: BaseDatabaseWrapper) -> bool:
    settings = connection.settings_dict
    if settings["OPTIONS"].get("pool"):
        return True
    if connection.get_autocommit() != settings["AUTOCOMMIT"]:
        return True
    if connection.errors_occurred:
        if not connection.is_usable():
            return True
        connection.errors_occurred = False
    # Django's default age of 0 means one request, and a worker has no requests. But nobody knows
    # how many threads tasks have.
    keeps = not settings["CONN_MAX_AGE"] and ref(connection) not in _elsewhere
    close_at = None if keeps else connection.close_at
    return close_at is not None and time.monotonic() >= close_at


def _plan_health_check(connection: Any) -> None:
    settings = connection.settings_dict
    fresh_each_time = settings["CONN_MAX_AGE"] == 0
    connection.health_check_enabled = settings["CONN_HEALTH_CHECKS"] or fresh_each_time
    connection.health_check_done = False


def _drop(connection: BaseDatabaseWrapper) -> None:
    """Roll back, close, and discard the wrapper, which may count on the end of an atomic block
    that never comes. A pool gets the slot back, but not the session."""
    wrapper: Any = connection
    driver = wrapper.connection
    if driver is not None:
        for end in (driver.rollback, driver.close, wrapper._close):
            with suppress(Exception):
                end()
    wrapper.connection = None
    if connection in connections.all(initialized_only=True):
        del connections[connection.alias]
