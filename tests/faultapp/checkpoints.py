"""Tasks that resume where the attempt before them was killed."""

from __future__ import annotations

import os
import time
from typing import Any

from django.db.transaction import atomic

from steady_queue_core import Preempted, task
from steady_queue_core.retries import constant

from .effects import record
from .models import Note


def note(event: str, context: Any, step: int) -> None:
    """Append a line to a log of steps: which attempt of which job has done which."""
    line = f"{event} {context.task_result.id} {context.token} {step}\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = os.open(os.environ["STEADY_QUEUE_EFFECT_LOG"] + ".steps", flags, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _first(context: Any) -> int:
    record("start", context)
    first = context.checkpointed or 0
    note("resume", context, first)
    return int(first)


def count_on(context: Any, steps: int, seconds: float) -> int:
    for step in range(_first(context), steps):
        note("step", context, step)
        time.sleep(seconds)
        context.checkpoint(step + 1)
        context.progress(step + 1, steps, f"step {step}")
    record("end", context)
    return int(context.token)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def count(context: Any, steps: int, seconds: float) -> int:
    return count_on(context, steps, seconds)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
async def count_in_a_coroutine(context: Any, steps: int, seconds: float) -> int:
    import asyncio

    for step in range(_first(context), steps):
        note("step", context, step)
        await asyncio.sleep(seconds)
        await context.acheckpoint(step + 1)
        await context.aprogress(step + 1, steps, f"step {step}")
    record("end", context)
    return int(context.token)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def insert_each(context: Any, steps: int, seconds: float) -> int:
    """Write a row for each step, in one transaction with the checkpoint."""
    for step in range(_first(context), steps):
        with atomic():
            Note.objects.create(text=f"{context.task_result.id} {step}")
            time.sleep(seconds)
            context.checkpoint(step + 1)
    record("end", context)
    return int(context.token)


@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def wait_for_the_next(context: Any) -> int:
    """Wait until another attempt has begun, and tell what this one may store then."""
    first = _first(context)
    if first:
        context.progress(2)
        time.sleep(1)
        record("end", context)
        return int(context.token)
    context.checkpoint(1)
    note("held", context, int(context.is_held()))
    began = time.monotonic()
    while context.is_held() and time.monotonic() < began + 30:
        time.sleep(0.01)
    note("held", context, int(context.is_held()))
    for name, value in (("checkpoint", 99), ("progress", 99)):
        try:
            getattr(context, name)(value)
        except Preempted:
            note(f"preempted-{name}", context, value)
        else:
            note(f"stored-{name}", context, value)
    record("end", context)
    context.checkpoint(99)
    return int(context.token)
