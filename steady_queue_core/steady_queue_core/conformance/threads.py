"""Real threads, each with a database connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, TypeVar

from django.db import connections
from django.db.transaction import atomic

from ..dialects.registry import dialect_for

T = TypeVar("T")


def start(using: str, function: Callable[[], T]) -> Future[T]:
    """Run ``function`` in a thread with a prepared connection, which is closed at the end."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            dialect_for(using).prepare(connections[using])
            result = function()
        except BaseException as error:
            with suppress(Exception):  # It may be what is broken.
                connections.close_all()
            future.set_exception(error)
        else:
            connections.close_all()
            future.set_result(result)

    # A case that fails must not keep the test run from ending.
    Thread(target=run, daemon=True).start()
    return future


def run_all(using: str, functions: Sequence[Callable[[], T]], patience: float) -> list[T]:
    """Run each function in a thread of its own; return their results, or raise their error."""
    futures = [start(using, function) for function in functions]
    wait(futures, timeout=patience)  # For all, so that none works on in the next case.
    return [future.result(timeout=0) for future in futures]


@contextmanager
def holding(using: str, work: Callable[[], Any], patience: float) -> Iterator[Callable[..., None]]:
    """Keep a transaction open in another thread, with ``work`` done in it.

    Yields a function that ends it before the block does: ``end(commit=True)`` commits. Without a
    call it is rolled back.
    """
    ready, ended = Event(), Event()
    wanted = {"commit": False}

    def hold() -> None:
        try:
            with atomic(using=using):
                work()
                ready.set()
                ended.wait(patience)
                if not wanted["commit"]:
                    raise _RolledBack
        except _RolledBack:
            pass
        finally:
            ready.set()

    def end(*, commit: bool) -> None:
        wanted["commit"] = commit
        ended.set()
        held.result(timeout=patience)

    held = start(using, hold)
    ready.wait(patience)
    try:
        if held.done():
            held.result()
        yield end
    finally:
        ended.set()
        held.result(timeout=patience)


class _RolledBack(Exception):
    pass
