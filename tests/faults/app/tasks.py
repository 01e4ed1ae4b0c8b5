"""Tasks that go wrong where a test says so, and one that must not notice."""

from __future__ import annotations

import gc
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from steady_queue_core import Batch, Unique, limits_concurrency, limits_rate, task
from steady_queue_core.middleware import Middleware

from ...faultapp.effects import record
from .switch import trip


class Surrounding(Middleware):
    """Goes wrong around faulty jobs."""

    def execute(self, context: Any, proceed: Any) -> Any:
        if context.task_result.task.queue_name == "faulty":
            trip("middleware")
        return proceed()

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        if context.task_result.task.queue_name == "faulty":
            trip("middleware of coroutines")
        return await proceed()

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        for call in calls:
            if call.recurring is not None and call.args:
                trip(f"schedule: middleware, {call.args[0]}")
        is_faulty = any(call.task.queue_name == "faulty" for call in calls)
        if is_faulty:
            trip("middleware before an enqueue")
            calls = [call.carrying({"from": "afar"}) for call in calls]
        results = proceed(calls)
        if is_faulty:
            trip("middleware after an enqueue")
        return results

    def inherited(self, headers: Any) -> Any:
        trip("headers of a callback")
        return {}


def report(error: BaseException, task_result: Any) -> None:
    """Be told of failed jobs."""
    trip("error reporter")


class UntoldError(Exception):
    """Has a text that cannot be found out."""

    def __str__(self) -> str:
        trip("text of an error")
        return "on purpose"


@task
def count_errors() -> int:
    """Return how many of the errors that were raised on purpose are still in memory."""
    gc.collect()
    found = [each for each in gc.get_objects() if isinstance(each, BaseException)]
    return sum("was_on_purpose" in each.__dict__ for each in found)


@task(queue_name="faulty")
def function() -> None:
    trip("function")


@task(queue_name="faulty")
async def coroutine() -> None:
    trip("coroutine")


@task(queue_name="faulty")
def fail_untold() -> None:
    raise UntoldError


@task(queue_name="faulty")
def fail() -> None:
    raise ValueError("on purpose")


def pause(attempts: int, *args: Any) -> float:
    trip("back-off")
    return 0.0


@task(queue_name="faulty", max_attempts=2, backoff=pause)
def fail_twice() -> None:
    raise ValueError("on purpose")


def key_of_call(*args: Any) -> str:
    trip("key of a callback")
    return "key"


def unique_key_of_call(*args: Any) -> str:
    trip("unique key of a callback")
    return "key"


def hopeless_key(*args: Any) -> str:
    raise ValueError("on purpose")


@limits_concurrency(key=key_of_call)
@task
def limited(result_id: str) -> None:
    pass


@task(unique=Unique(key=unique_key_of_call))
def unique(result_id: str) -> None:
    pass


@task(queue_name="faulty", on_success=limited)
def with_limited_callback() -> None:
    pass


@limits_concurrency(key=hopeless_key)
@task
def hopeless(result_id: str) -> None:
    pass


@task(queue_name="faulty", on_success=hopeless)
def with_hopeless_callback() -> None:
    pass


@task(queue_name="faulty", on_success=unique)
def with_unique_callback() -> None:
    pass


def one_key(*args: Any) -> str:
    return "one"


@task(takes_context=True)
def work(context: Any, waits: bool = False) -> None:
    """Ask the database, and leave lines in the effect log; wait between them, until the file ``go``
    tells to go on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    record("start", context)
    deadline = time.monotonic() + 20
    while waits and time.monotonic() < deadline and not (settings.BASE_DIR / "go").exists():
        time.sleep(0.01)
    record("end", context)


@limits_concurrency(key=one_key)
@task(takes_context=True)
def limited_work(context: Any, waits: bool = False) -> None:
    work.func(context, waits)


@task(takes_context=True, unique=Unique(key=one_key))
def unique_work(context: Any, waits: bool = False) -> None:
    work.func(context, waits)


@limits_rate(key=one_key, to=1000, per=timedelta(seconds=1))
@task(takes_context=True)
def rated_work(context: Any, waits: bool = False) -> None:
    work.func(context, waits)


class Batched:
    """Enqueues a job alone in a batch, as a task enqueues one."""

    def enqueue(self, waits: bool) -> Any:
        with Batch("of one"):
            return work.enqueue(waits)


batched_work = Batched()
