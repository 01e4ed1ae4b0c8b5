"""Tasks that leave something behind in their thread, or in their process."""

from __future__ import annotations

import asyncio
import atexit
import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from steady_queue_core import task

from .effects import record
from .models import Note


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _begin() -> None:
    _execute("BEGIN")
    Note.objects.create(text="never committed")


@task
def begin() -> None:
    """Begin a transaction and return."""
    _begin()


@task
async def abegin() -> None:
    await sync_to_async(_begin)()


@task
def close() -> None:
    """Close the driver's connection, but not Django's wrapper."""
    connection.ensure_connection()
    connection.connection.close()


@task
def note(text: str) -> None:
    Note.objects.create(text=text)


@task
async def anote(text: str) -> None:
    await Note.objects.acreate(text=text)


@task
async def in_own_transaction(text: str, seconds: float) -> None:
    """Keep a transaction open over several steps, in which other tasks could disturb it."""
    await sync_to_async(_execute)("BEGIN")
    await Note.objects.acreate(text=text)
    await asyncio.sleep(seconds)
    await sync_to_async(_execute)("COMMIT")


@task
def session(statement: str) -> None:
    """Change a setting of the session, which the next task would find."""
    _execute(statement)


@task
async def asession(statement: str) -> None:
    await sync_to_async(_execute)(statement)


@task
def fork() -> int:
    """Return twice, with a connection that both processes share."""
    connection.ensure_connection()
    return os.fork()


@task
async def afork() -> int:
    return os.fork()


@task
def fork_and_raise(exits: bool) -> int:
    child = os.fork()
    if child == 0:
        raise SystemExit(7) if exits else RuntimeError("raised in the copy")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@task
def terminate() -> list[int | None]:
    """Start processes in the usual ways, and end them as usual."""
    context = multiprocessing.get_context("fork")
    child = context.Process(target=time.sleep, args=[3600])
    child.start()
    child.terminate()
    child.join(20)
    with context.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    program.terminate()
    return [child.exitcode, program.wait(20)]


@task
def leave_daemon() -> int:
    context = multiprocessing.get_context("fork")
    child = context.Process(target=time.sleep, args=[3600], daemon=True)
    child.start()
    return child.pid or 0


@task
async def cancel_everybody() -> None:
    """Cancel all other tasks on the loop, also those that have not started."""
    for other in asyncio.all_tasks() - {asyncio.current_task()}:
        other.cancel()


async def _swallow_cancellation() -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


@task
async def leave_immortal() -> int:
    """Leave something on the loop that does not end when it is cancelled."""
    immortal = asyncio.create_task(_swallow_cancellation())
    await asyncio.sleep(0)
    assert not immortal.done()
    return os.getpid()


@task
def fail_with(message: str) -> None:
    raise ValueError(message)


@task
def refuse_loops() -> None:
    """Let no event loop be made any more, as where no more files can be opened."""

    def refuse() -> asyncio.AbstractEventLoop:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    asyncio.new_event_loop = refuse


@task
def close_output() -> None:
    """Close both outputs, so that no error can be written."""
    sys.stdout.close()
    sys.stderr.close()


@task(takes_context=True)
async def occupy_queries(context: Any, seconds: float) -> None:
    """Keep the thread that runs coroutines' queries from doing anything else."""
    await Note.objects.acount()
    record("start", context)
    await sync_to_async(time.sleep)(seconds)


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))


@task
def use_shared_pool() -> list[int]:
    """Start processes that are shared by all jobs, and leave word of the exit."""
    atexit.unregister(_tell_of_exit)
    atexit.register(_tell_of_exit)
    found = list(_pool().map(_slow_pid, range(2)))
    print("said by a task")  # Starting a process has flushed the output.
    return found


def _slow_pid(number: int) -> int:
    time.sleep(0.05)  # So that the other one has a process of its own.
    return os.getpid()


def _tell_of_exit() -> None:
    print("said at the exit")


@task
def read_terminal() -> list[Any]:
    found: list[Any] = [signal.getsignal(signal.SIGTTIN) is signal.SIG_IGN, sys.stdin.readline()]
    try:
        with open("/dev/tty") as terminal:
            found.append(terminal.readline())
    except OSError as error:
        found.append(type(error).__name__)
    return found


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


@task
def begin_in_thread() -> None:
    _thread().submit(_begin).result()


@task
def note_in_thread(text: str) -> None:
    _thread().submit(note.func, text).result()


@task
async def abegin_in_thread() -> None:
    await asyncio.to_thread(_begin)


@task
async def anote_in_thread(text: str) -> None:
    await asyncio.to_thread(note.func, text)
