"""Tasks that do not end by themselves, each in another way; and those that run beside them."""

from __future__ import annotations

import asyncio
import ctypes
import time
from typing import Any

from django.db import connection, transaction

from steady_queue_core import Snooze, task
from steady_queue_core.errors import TaskTimeout

from .effects import record
from .models import Note

#: Seconds that a task would take without a time-out.
LONG = 600


@task(takes_context=True)
def spin(context: Any) -> None:
    record("start", context)
    while True:
        pass


@task(takes_context=True)
def swallow(context: Any) -> None:
    record("start", context)
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


@task(takes_context=True)
def sleep(context: Any) -> None:
    """Be in one call of C, which gives up the interpreter, but notices nothing."""
    record("start", context)
    time.sleep(LONG)


@task(takes_context=True)
def hold(context: Any) -> None:
    """Be in one call of C that holds the interpreter."""
    record("start", context)
    ctypes.PyDLL(None).sleep(LONG)


@task(takes_context=True)
def query(context: Any) -> None:
    """Be in the middle of a transaction."""
    record("start", context)
    with transaction.atomic():
        Note.objects.create(text=context.task_result.id)
        while True:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")


@task(takes_context=True, delivery="transactional")
def write_and_spin(context: Any) -> None:
    record("start", context)
    Note.objects.create(text=context.task_result.id)
    while True:
        pass


@task(takes_context=True)
async def aspin(context: Any) -> None:
    record("start", context)
    await asyncio.sleep(LONG)


@task(takes_context=True)
async def aswallow(context: Any) -> None:
    record("start", context)
    while True:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@task(takes_context=True)
async def ablock(context: Any) -> None:
    record("start", context)
    await asyncio.sleep(0.1)  # Others begin.
    time.sleep(LONG)


@task(takes_context=True)
def give_in(context: Any) -> str:
    record("start", context)
    try:
        while True:
            time.sleep(0.01)
    except TaskTimeout:
        return "in part"


@task(takes_context=True)
def put_off(context: Any) -> str:
    """Snooze when the time is over, once."""
    record("start", context)
    if len(context.metadata) or context.task_result.metadata:
        return "later"
    try:
        while context.attempt:
            time.sleep(0.01)
    except TaskTimeout:
        raise Snooze(LONG) from None
    return ""


@task(takes_context=True)
def work(context: Any, seconds: float = 0.0) -> bool:
    """Take so long in short steps; return whether there is a deadline."""
    record("start", context)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    record("end", context)
    return context.deadline is not None


@task(takes_context=True)
async def awork(context: Any, seconds: float = 0.0) -> bool:
    record("start", context)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.01)
    record("end", context)
    return context.deadline is not None
