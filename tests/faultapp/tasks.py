"""Tasks for the fault tests: each leaves lines in the effect log and returns its claim's token."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from steady_queue_core import limits_concurrency, task
from steady_queue_core.retries import constant

from .effects import record
from .models import Note


@task(takes_context=True)
def work(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return context.token


@task(takes_context=True, max_attempts=10, backoff=constant(0))
def work_again(context: Any, seconds: float = 0.0) -> int:
    """Work that may start again when its worker dies."""
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return context.token


@task(takes_context=True)
async def awork(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    await asyncio.sleep(seconds)
    record("end", context)
    return context.token


@task(takes_context=True)
async def await_thread(context: Any, seconds: float) -> int:
    """Wait for another thread."""
    record("start", context)
    await sync_to_async(time.sleep, thread_sensitive=False)(seconds)
    record("end", context)
    return context.token


@task(takes_context=True)
async def block_loop(context: Any, seconds: float) -> int:
    """Block the event loop, which a coroutine should not do."""
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return context.token


@task(takes_context=True, max_attempts=3, backoff=constant(0.3))
def flaky(context: Any, failures: int) -> int:
    """Fail so many times, then succeed."""
    record("start", context)
    record("end", context)
    if context.attempt <= failures:
        raise RuntimeError(f"attempt {context.attempt} fails")
    return context.token


@task(takes_context=True)
def note(context: Any, seconds: float = 0.0) -> int:
    """Write a row of the project, in a transaction that reads first."""
    record("start", context)
    with transaction.atomic():
        Note.objects.count()
        Note.objects.create(text=f"job {context.task_result.id}")
        time.sleep(seconds)
    record("end", context)
    return context.token


@task(takes_context=True, max_attempts=2, backoff=constant(0))
def freeze_in_transaction(context: Any) -> int:
    """Stop the whole worker while it holds the database's write lock; only once."""
    record("start", context)
    if context.attempt == 1:
        with transaction.atomic():
            Note.objects.create(text="frozen")
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(60)  # Another thread takes the signal, when it gets a processor.
    record("end", context)
    return context.token


@task(takes_context=True)
def leave(context: Any, status: int) -> None:
    """End the whole worker, as a crash would."""
    record("start", context)
    os._exit(status)


@task(takes_context=True)
def work_on(context: Any, text: str) -> int:
    record("start", context)
    record("end", context)
    return context.token


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def answer(context: Any, length: int) -> str:
    """Return a text of that length."""
    record("start", context)
    record("end", context)
    return "x" * length


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def fail_at_length(context: Any, length: int) -> int:
    """Fail with a message of that length."""
    record("start", context)
    record("end", context)
    raise RuntimeError("x" * length)


def limited(key: str, to: int, **options: Any) -> Any:
    """Return a task of which at most ``to`` may run at once."""

    def run(context: Any, seconds: float = 0.0) -> int:
        record("start", context)
        time.sleep(seconds)
        record("end", context)
        return context.token

    run.__name__ = run.__qualname__ = key
    decorated = task(takes_context=True, max_attempts=10, backoff=constant(0))(run)
    return limits_concurrency(key=key, to=to, group="limited", **options)(decorated)


one_by_one = limited("one_by_one", 1)
in_pairs = limited("in_pairs", 2)
in_fives = limited("in_fives", 5)


@limits_concurrency(key="one_by_one", group="limited")
@task(takes_context=True, max_attempts=10, backoff=constant(0))
async def aone_by_one(context: Any, seconds: float = 0.0) -> int:
    """A coroutine of the same key as a function."""
    record("start", context)
    await asyncio.sleep(seconds)
    record("end", context)
    return context.token


alone = limited("alone", 1, on_conflict="discard")


@task(takes_context=True)
def spin(context: Any, seconds: float) -> int:
    """Work in Python, step by step."""
    record("start", context)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    record("end", context)
    return context.token


class Killed(BaseException):
    """Nobody takes it for an error of a database or of a task, wherever it is raised."""


@task(takes_context=True)
def kill_own_worker(context: Any, seconds: float) -> int:
    """Make the main thread of a threaded worker fail, and continue."""
    record("start", context)
    for thread in threading.enumerate():
        if thread.name.startswith("steady-queue-worker-"):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Killed)
            )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    record("end", context)
    return context.token


@task(takes_context=True, max_attempts=2, backoff=constant(0))
def leave_open_copy(context: Any, seconds: float) -> int:
    """Fork a process that goes on, then end the one that was to run the job; only once."""
    record("start", context)
    if context.attempt == 1:
        if os.fork() == 0:
            time.sleep(seconds)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    record("end", context)
    return context.token


@task
def fail_with(path: str, message: str) -> None:
    raise {"LookupError": LookupError, "TimeoutError": TimeoutError}[path](message)


@task
def echo(value: Any) -> Any:
    return value


@task(takes_context=True)
def crash(context: Any) -> None:
    """End the interpreter as a fault in a C extension would."""
    record("start", context)
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)


_kept: list[bytes] = []


@task(takes_context=True)
def leak(context: Any, size: int) -> int:
    """Occupy so many bytes for good."""
    record("start", context)
    _kept.append(b"\1" * size)
    record("end", context)
    return context.token


@task
def waits_for_locks(alias: str) -> Any:
    """Return how long a connection to a database in a file waits for locks, in milliseconds."""
    with connections[alias].cursor() as cursor:
        return cursor.execute("PRAGMA busy_timeout").fetchone()[0]


@task(takes_context=True)
def bounce(context: Any, times: int, backend: str) -> None:
    """Enqueue itself at another backend, which does the same."""
    record("start", context)
    if times:
        own = context.task_result.backend
        bounce.using(backend=backend).enqueue(times - 1, own)
    record("end", context)
