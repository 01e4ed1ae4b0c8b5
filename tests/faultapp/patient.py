"""Tasks that take their time in Python, where they can be interrupted; each tells how it ended."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.db import connection, transaction

from steady_queue_core import limits_concurrency, task
from steady_queue_core.errors import TaskCancelled
from steady_queue_core.retries import constant

from .effects import record


def _pass_time(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.005)


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def stay(context: Any, seconds: float) -> int:
    record("start", context)
    try:
        while True:
            try:
                _pass_time(seconds)
                return int(context.token)
            except Exception:  # Not what a task is cancelled with.
                continue
    finally:
        record("end", context)


@task(takes_context=True, max_attempts=3, backoff=constant(0))
async def astay(context: Any, seconds: float) -> int:
    record("start", context)
    try:
        await asyncio.sleep(seconds)
        return int(context.token)
    finally:
        record("end", context)


@limits_concurrency(key="one", group="patient")
@task(takes_context=True)
def stay_alone(context: Any, seconds: float) -> int:
    record("start", context)
    _pass_time(seconds)
    record("end", context)
    return int(context.token)


@task(takes_context=True)
def query(context: Any, seconds: float) -> int:
    """Be in the middle of a statement, in a transaction, most of the time."""
    record("start", context)
    end = time.monotonic() + seconds
    with transaction.atomic(), connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT 1")
            cursor.fetchall()
            if time.monotonic() > end:
                return int(context.token)


@task(takes_context=True)
def obey(context: Any, seconds: float) -> list[bool]:
    """Finish although it was cancelled, and return whether the context knew."""
    record("start", context)
    before = context.cancel_requested
    try:
        _pass_time(seconds)
    except TaskCancelled:
        return [before, context.cancel_requested]
    return [before]


@task(takes_context=True)
def obstinate(context: Any, seconds: float) -> None:
    """Raise something else when it is cancelled."""
    record("start", context)
    try:
        _pass_time(seconds)
    except TaskCancelled:
        raise LookupError("not now") from None
