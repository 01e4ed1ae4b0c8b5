"""The tasks of the demo. Each run writes a line to a file beside the database."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from steady_queue_core import Fail, recurring, task
from steady_queue_core.retries import constant

EFFECTS = Path(__file__).resolve().parent.parent / "effects.log"


@contextmanager
def effect(name: str, number: int = 0) -> Iterator[None]:
    """Write down that a task ran, from when to when, and whether it got to its end."""
    began = time.time()
    ended = False
    try:
        yield
        ended = True
    finally:
        line = json.dumps([name, number, began, time.time(), ended])
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(EFFECTS, flags, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)


@task
def greet(number: int) -> int:
    """Be quick."""
    with effect("greet", number):
        return number


@task(queue_name="reports")
def report(number: int) -> int:
    """Take a while."""
    with effect("report", number):
        time.sleep(0.2)
        return number


@task(queue_name="mail")
def remind(number: int) -> int:
    """Is enqueued for later."""
    with effect("remind", number):
        return number


@task(queue_name="mail", takes_context=True, max_attempts=3, backoff=constant(0.5))
def flaky(context: Any, number: int) -> int:
    """Fail twice, then succeed."""
    with effect("flaky", number):
        if context.attempt < 3:
            raise ConnectionError("try later")
        return number


@task(max_attempts=2, backoff=constant(0.3))
def broken(number: int) -> None:
    """Fail, and fail again."""
    with effect("broken", number):
        raise ValueError("this one always fails")


@task(queue_name="web")
async def fetch(number: int) -> int:
    """Wait for something far away, without a thread."""
    with effect("fetch", number):
        await asyncio.sleep(1)
        return number


@task(queue_name="reports", takes_context=True, max_attempts=2, backoff=constant(0.3))
def convert(context: Any, number: int) -> int:
    """Fail after a number of pages, go on from there, and return how many these were."""
    first = context.checkpointed or 0
    with effect("convert", number):
        for page in range(first, 2 * number):
            if page == number and not first:
                raise ConnectionError("lost half-way")
            time.sleep(0.1)
            context.progress(page + 1, 2 * number, "pages")
            if page % 5 == 4:
                context.checkpoint(page + 1)
        return 2 * number - first


@task(queue_name="web")
async def watch(number: int) -> None:
    """Run until it is cancelled."""
    with effect("watch", number):
        await asyncio.sleep(3600)


@task(queue_name="web", timeout=0.5)
async def stall(number: int) -> None:
    """Wait for something that never comes, as long as it may."""
    with effect("stall", number):
        await asyncio.sleep(3600)


@task(queue_name="orders")
def pack(number: int) -> int:
    """Is one of a batch."""
    with effect("pack", number):
        return number


@task(queue_name="orders", takes_context=True)
def ship(context: Any) -> int:
    """Run when a batch has ended, and return how many of its jobs have succeeded."""
    with effect("ship"):
        return int(context.batch.completed)


@task(queue_name="orders")
def weigh(number: int) -> int:
    """Be the first step of a workflow, whose result is an argument of the next one."""
    with effect("weigh", number):
        return 10 * number


@task(queue_name="orders")
def charge(amount: int) -> None:
    """Fail for good: one branch of the workflow starts, the other one does not."""
    with effect("charge", amount):
        raise Fail("the card was refused")


@task(queue_name="orders")
def thank() -> None:
    """Would run after a success."""
    with effect("thank"):
        pass


@task(queue_name="orders")
def dun() -> str:
    """Run after a failure."""
    with effect("dun"):
        return "sent"


@recurring(schedule=timedelta(seconds=2), key="tick")
@task(queue_name="clock")
def tick() -> None:
    """Run every two seconds."""
    with effect("tick"):
        pass
