"""Tasks whose steps leave a trace outside of the queue and its database."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from django.db.transaction import atomic

from steady_queue_core import Preempted, task
from steady_queue_core.retries import constant

from .checkpoints import note
from .effects import record
from .models import Note

#: Where a job that is to die does so in its first and its second attempt: when a step has done its
#: work and is not stored yet, and when one is just stored.
UNSTORED, STORED = 3, 5


def _die(context: Any, step: int, where: int, *, dies: bool) -> None:
    """Kill this process, once for each place."""
    if dies and step == where:
        flag = f"{os.environ['STEADY_QUEUE_EFFECT_LOG']}.{context.task_result.id}.{where}"
        if not os.path.exists(flag):
            with open(flag, "x"):
                os.kill(os.getpid(), signal.SIGKILL)


def take(context: Any, step: int, seconds: float, dies: bool) -> int:
    """Do the work of a step; return which attempt has done it."""
    note("begin", context, step)
    time.sleep(seconds)
    note("return", context, step)
    _die(context, step, UNSTORED, dies=dies)
    return int(context.token)


async def atake(context: Any, step: int, seconds: float, dies: bool) -> int:
    import asyncio

    note("begin", context, step)
    await asyncio.sleep(seconds)
    note("return", context, step)
    _die(context, step, UNSTORED, dies=dies)
    return int(context.token)


def _told(context: Any, step: int, by: int, dies: bool) -> None:
    note(f"stored-by-{by}", context, step)
    _die(context, step, STORED, dies=dies)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def walk(context: Any, steps: int, seconds: float, dies: bool) -> int:
    record("start", context)
    for step in range(steps):
        by = context.step(f"step {step}", take, context, step, seconds, dies)
        _told(context, step, by, dies)
    record("end", context)
    return int(context.token)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
async def walk_in_a_coroutine(context: Any, steps: int, seconds: float, dies: bool) -> int:
    record("start", context)
    for step in range(steps):
        function = atake if step % 2 else take
        by = await context.astep(f"step {step}", function, context, step, seconds, dies)
        _told(context, step, by, dies)
    record("end", context)
    return int(context.token)


def _insert(context: Any, step: int, seconds: float) -> None:
    Note.objects.create(text=f"{context.task_result.id} {step}")
    time.sleep(seconds)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def insert_each(context: Any, steps: int, seconds: float) -> int:
    """Write a row in each step, in one transaction with it."""
    record("start", context)
    for step in range(steps):
        with atomic():
            context.step(f"step {step}", _insert, context, step, seconds)
    record("end", context)
    return int(context.token)


@task(takes_context=True)
def doze(context: Any, seconds: float) -> int:
    """Sleep, and count how often that takes a thread."""
    record("start", context)
    context.step("before", note, "before", context, 0)
    context.sleep("nap", seconds)
    context.step("after", note, "after", context, 0)
    record("end", context)
    return int(context.attempt)


@task
def hurry() -> None:
    """Do nothing."""


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def step_beside_the_next(context: Any) -> int:
    """Wait until another attempt has begun, and tell which steps this one may store then."""
    record("start", context)
    context.step("first", int)
    if context.step("who", lambda: context.token) != context.token:
        time.sleep(1)
        record("end", context)
        return int(context.token)
    note("held", context, 1)
    began = time.monotonic()
    while context.is_held() and time.monotonic() < began + 30:
        time.sleep(0.01)
    try:
        context.step("late", int)
    except Preempted:
        note("preempted", context, 0)
    else:
        note("stored", context, 0)
    record("end", context)
    context.step("later", int)
    return int(context.token)
