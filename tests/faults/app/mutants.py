"""Mutants of the product, each of which lets one fault spread: cells of the sweep have to find it.

``tests.faultapp.mutants`` installs them in the processes of a project.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def replace(owner: Any, name: str, value: Any) -> None:
    """Take away a guard, which has to be there: it may have moved."""
    assert hasattr(owner, name), f"{owner} has no {name}"
    setattr(owner, name, value)


def _all_passes() -> None:
    """Whatever code of the project raises reaches its callers."""
    from steady_queue_core import project_code

    def contained(function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    project_code.contained.__code__ = contained.__code__


def _texts_are_trusted() -> None:
    """Each exception is believed to have a text."""
    from steady_queue_core import project_code

    def text_of(error: BaseException) -> str:
        return str(error)

    project_code.text_of.__code__ = text_of.__code__


def _receivers_are_trusted() -> None:
    """Receivers, and with them hooks, are called without containment."""
    from steady_queue_core import signals

    def send_now(signal: Any, sender: Any, payload: Any) -> None:
        signal.send(sender, **payload)

    replace(signals, "_send_now", send_now)


def _keys_are_trusted() -> None:
    """What a key's callable raises is raised to who enqueues."""
    from steady_queue_core.features import keys

    def text_of(key: Any, args: Any, kwargs: Any, *rest: Any, **named: Any) -> Any:
        return key(*args, **kwargs) if callable(key) else key

    keys.text_of.__code__ = text_of.__code__
    keys.text_of.__defaults__ = keys.text_of.__kwdefaults__ = None


def _runs_are_trusted() -> None:
    """What cannot be enqueued ends the round of its scheduler."""
    from steady_queue_core.processes.scheduler.due_times import DueTimes

    def enqueue(self: Any, entry: Any, due: Any) -> Any:
        attempt = self._run(entry, due)
        self._tell(entry.definition.key, attempt)
        return attempt

    replace(DueTimes, "_enqueue", enqueue)


def _calls_are_stored_apart() -> None:
    """Calls that are enqueued at once are stored one after the other."""
    from steady_queue_core.backend import SteadyQueueBackend

    original = SteadyQueueBackend.insert

    def insert(self: Any, calls: Any) -> Any:
        return [stored for call in calls for stored in original(self, [call])]

    replace(SteadyQueueBackend, "insert", insert)


def _nothing_is_set_aside() -> None:
    """Outcomes wait for a lock together."""
    from steady_queue_core.processes.worker.settlement import Settlement

    replace(Settlement, "_put_aside", lambda self, batch: None)


def _locks_are_waited_for() -> None:
    """Statements skip no locked rows."""
    from django.db.backends.utils import CursorWrapper

    original = CursorWrapper.execute

    def execute(self: Any, sql: Any, params: Any = None) -> Any:
        return original(self, str(sql).replace(" SKIP LOCKED", ""), params)

    replace(CursorWrapper, "execute", execute)


def _leaving(leave: Callable[[BaseException], object]) -> Callable[[], None]:
    """Return what has each failed job leave something in its process."""

    def install() -> None:
        from steady_queue_core.processes.worker.executor import Executor

        original = Executor._failed

        def failed(self: Any, attempt: Any, error: BaseException) -> Any:
            leave(error)
            return original(self, attempt, error)

        replace(Executor, "_failed", failed)

    return install


def _thread(error: BaseException) -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def _file(error: BaseException) -> None:
    os.open(os.devnull, os.O_RDONLY)


_errors: list[BaseException] = []


def _connections_are_not_tidied() -> None:
    """Tasks find their connections as others have left them: with something that refuses all."""
    from steady_queue_core.processes.worker.executor import Executor

    replace(Executor, "tidy", lambda self: None)
    _leaving(_wrapper)()


def _wrapper(error: BaseException) -> None:
    from django.db import connection

    def refuse(*args: Any) -> Any:
        raise RuntimeError("the connection was left like that")

    connection.execute_wrappers.append(refuse)


MUTANTS: dict[str, Callable[[], None]] = {
    "all passes": _all_passes,
    "texts are trusted": _texts_are_trusted,
    "receivers are trusted": _receivers_are_trusted,
    "keys are trusted": _keys_are_trusted,
    "runs are trusted": _runs_are_trusted,
    "calls are stored apart": _calls_are_stored_apart,
    "nothing is set aside": _nothing_is_set_aside,
    "locks are waited for": _locks_are_waited_for,
    "threads are left": _leaving(_thread),
    "files are left": _leaving(_file),
    "errors are kept": _leaving(_errors.append),
    "connections are not tidied": _connections_are_not_tidied,
}
