"""Tasks whose starts are limited in their rate."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

from steady_queue_core import limits_concurrency, limits_rate, task
from steady_queue_core.retries import constant

from .effects import record
from .models import Note


@limits_rate(to=100, per=timedelta(seconds=1), burst=20)
@task(takes_context=True, max_attempts=1000, backoff=constant(0))
def work(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)


@limits_rate(to=100, per=timedelta(seconds=1), burst=20)
@task(takes_context=True, max_attempts=1000, backoff=constant(0))
async def work_in_a_coroutine(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    await asyncio.sleep(seconds)
    record("end", context)
    return int(context.token)


@limits_rate(to=10, per=timedelta(seconds=1), burst=5, group="of all kinds")
@task(takes_context=True, max_attempts=2, backoff=constant(0))
def fail_once(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    if context.attempt == 1:
        raise ValueError("in the first attempt")
    record("end", context)
    return int(context.token)


@limits_concurrency(key="few", to=2, group="of all kinds")
@limits_rate(to=10, per=timedelta(seconds=1), burst=5, group="of all kinds")
@task(takes_context=True)
def work_with_few(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return int(context.token)


@limits_rate(to=10, per=timedelta(seconds=1), burst=5, group="of all kinds")
@task(takes_context=True, delivery="transactional")
def insert(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    Note.objects.create(text=context.task_result.id)
    record("end", context)
    return int(context.token)


@limits_rate(to=1, per=timedelta(hours=1), key="slow")
@task(takes_context=True)
def work_slowly(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    record("end", context)
    return int(context.token)


@limits_rate(to=1, per=timedelta(seconds=2), key="seldom")
@task(takes_context=True)
def work_seldom(context: Any, seconds: float = 0.0) -> int:
    record("start", context)
    record("end", context)
    return int(context.token)
