"""Tasks that go wrong in every way that their worker has to bear."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import reduce
from typing import Any, NoReturn

from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

from steady_queue_core import task
from steady_queue_core.models import Job
from steady_queue_core.retries import constant

from ..faultapp.models import Note


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for this one")

    __repr__ = __str__


class ExitingError(Exception):
    def __str__(self) -> str:
        raise SystemExit("from __str__")

    __repr__ = __str__


class SubclassedTextError(Exception):
    class Text(str):
        __slots__ = ()

        def __len__(self) -> int:
            raise RuntimeError("no length")

    def __str__(self) -> str:
        return self.Text("text of a subclass")


class StrangelyNamedError(Exception):
    """Has a name that no column takes."""


StrangelyNamedError.__qualname__ = "Strange\0\ud800" * 100

RAISED: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("on purpose"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(),
    "GeneratorExit": lambda: GeneratorExit("on purpose"),
    "CancelledError": lambda: asyncio.CancelledError("on purpose"),
    "StopIteration": lambda: StopIteration("on purpose"),
    "BaseException": lambda: BaseException("on purpose"),
    "ExceptionGroup": lambda: ExceptionGroup("several", [ValueError("1"), TypeError("2")]),
    "UnprintableError": UnprintableError,
    "ExitingError": ExitingError,
    "SubclassedTextError": SubclassedTextError,
    "StrangelyNamedError": lambda: StrangelyNamedError("on purpose"),
    "HugeError": lambda: ValueError("begin " + "x" * 50_000_000 + " end"),
    "NulError": lambda: ValueError("a\0b \ud800 \x1b[31m %s {0.__class__}"),
    "MemoryError": lambda: MemoryError("no memory"),
}


@task
def fail_with(name: str) -> NoReturn:
    raise RAISED[name]()


@task
async def afail_with(name: str) -> NoReturn:
    await asyncio.sleep(0)
    raise RAISED[name]()


@task
async def fail_in_a_thread_with(name: str) -> None:
    await sync_to_async(fail_with.func)(name)


@task
def chain_of_causes(length: int) -> NoReturn:
    error = ValueError("the last")
    for _ in range(length):
        outer = ValueError("a cause")
        outer.__cause__ = error
        error = outer
    raise error


@task
def recurse(depth: int = 0) -> None:
    recurse.func(depth + 1)


@task
def exhaust_memory() -> int:
    return len(bytearray(2**62))


@task
def takes_a(a: int) -> int:
    return a


@task
async def atakes_a(a: int) -> int:
    return a


@task
def takes_note(note: Note) -> str:
    return note.text


@task
async def atakes_note(note: Note) -> str:
    return note.text


def _generator() -> Iterator[int]:
    yield 1


RETURNED: dict[str, Callable[[], Any]] = {
    "list": lambda: [1],
    "lambda": lambda: lambda: None,
    "generator": _generator,
    "NaN": lambda: float("nan"),
    "2 MiB": lambda: "x" * 2 * 2**20,
    "unsaved": lambda: Note(text="unsaved"),
    "deep": lambda: reduce(lambda inner, _: [inner], range(70), []),
}


@task
def give(name: str) -> Any:
    return RETURNED[name]()


@task
async def agive(name: str) -> Any:
    return RETURNED[name]()


@task
async def yields() -> AsyncIterator[int]:
    yield 1


# --- tasks that succeed, and leave a mess --------------------------------------------------------


def _leave_a_transaction_open() -> None:
    transaction.atomic().__enter__()
    Note.objects.create(text="never committed")


@task
def leaves_a_transaction_open() -> None:
    _leave_a_transaction_open()


@task
async def aleaves_a_transaction_open() -> None:
    await sync_to_async(_leave_a_transaction_open)()


@task
def leaves_autocommit_off() -> None:
    transaction.set_autocommit(False)
    Note.objects.create(text="never committed")


@task
def closes_connections() -> None:
    Note.objects.count()
    connections.close_all()


@task
def breaks_a_transaction() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT no_such_column FROM no_such_table")


@task
def changes_directory() -> None:
    os.chdir("/")


@task
async def spawns_an_exit() -> None:
    async def leave() -> None:
        raise SystemExit("from a task of the loop")

    spawned = asyncio.ensure_future(leave())
    await asyncio.wait([spawned])


@task
async def leaves_an_exit_behind() -> None:
    async def stay() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise SystemExit("from what the task has left behind") from None

    asyncio.ensure_future(stay())  # noqa: RUF006 - it is to be left behind
    await asyncio.sleep(0)


@task
async def breaks_the_loop() -> None:
    loop: Any = asyncio.get_running_loop()
    os.close(loop._selector.fileno())
    await asyncio.sleep(60)


@task
async def stops_the_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


@task
async def cancels_itself() -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(10)


@task
async def cancels_itself_and_raises() -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    raise ValueError("on purpose")


@task
def receivers_raise() -> str:
    return "done"


@task
async def areceivers_raise() -> str:
    return "done"


@task
def writes_a_note(text: str) -> None:
    Note.objects.create(text=text)


@task
async def awrites_a_note(text: str) -> None:
    await Note.objects.acreate(text=text)


# --- tasks that end their process ----------------------------------------------------------------


def _wait_for_predecessors(context: Any) -> None:
    """Return when the outcomes of earlier jobs are stored: they must not die along."""
    earlier = Job.objects.filter(pk__lt=int(context.task_result.id), finished_at=None)
    while earlier.filter(claimedexecution__isnull=False).exists():
        time.sleep(0.005)


def _segfault() -> None:
    import faulthandler

    faulthandler.disable()
    ctypes.string_at(0)


DEATHS: dict[str, Callable[[], Any]] = {
    "exit code 0": lambda: os._exit(0),
    "exit code 3": lambda: os._exit(3),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": _segfault,
}


@task(takes_context=True)
def die(context: Any, name: str) -> None:
    _wait_for_predecessors(context)
    DEATHS[name]()


@task(takes_context=True)
async def adie(context: Any, name: str) -> None:
    await sync_to_async(_wait_for_predecessors)(context)
    DEATHS[name]()


@task(takes_context=True, max_attempts=2, backoff=constant(0))
def die_again(context: Any, name: str) -> None:
    _wait_for_predecessors(context)
    DEATHS[name]()


@task(takes_context=True, max_attempts=2, backoff=constant(0))
def die_once(context: Any, name: str) -> str:
    if context.attempt == 1:
        _wait_for_predecessors(context)
        DEATHS[name]()
    return "survived"
