"""A process of the project that enqueues and writes like a web process, on request.

Reads one JSON array ``[function, keyword arguments]`` a line, a function of this module or by its
path, and answers each with an object that
has a ``value`` or an ``error``.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import django


def enqueue(
    task: str,
    calls: list[list[Any]],
    delay: float | None = None,
    queue: str = "",
    periods: dict[str, float] | None = None,
    fair_key: str = "",
    backend: str = "default",
) -> Any:
    """Enqueue a task (also ``module:name``, of this app or by a full path) for each list of
    arguments; return the ids. ``periods``: options of ``using()`` in seconds."""
    from django.db import transaction

    from steady_queue_core.configured_backends import own_backend

    module, _, name = task.rpartition(":")
    path = module if "." in module else f".{module or 'tasks'}"
    chosen = getattr(importlib.import_module(path, __package__), name)
    if delay is not None:
        chosen = chosen.using(run_after=timedelta(seconds=delay))
    if queue:
        chosen = chosen.using(queue_name=queue)
    if fair_key:
        chosen = chosen.using(fair_key=fair_key)
    if periods:
        chosen = chosen.using(
            **{name: timedelta(seconds=seconds) for name, seconds in periods.items()}
        )
    if backend != "default":
        chosen = chosen.using(backend=backend)
    ids = []
    for first in range(0, len(calls), 200):
        with transaction.atomic(using=own_backend(backend).database):
            for args in calls[first : first + 200]:
                ids.append(int(chosen.enqueue(*args).id))
    return ids


def wait_for_end(task: str, args: list[Any], timeout: float | None, asynchronously: bool) -> Any:
    """Enqueue a call and wait for its end; return what came of it, and when."""
    from asgiref.sync import async_to_sync
    from django.db import connection

    from . import tasks

    job_id = ""
    try:
        result = getattr(tasks, task).enqueue(*args)
        job_id, before = result.id, len(connection.queries_log)
        wait = async_to_sync(result.await_result) if asynchronously else result.wait
        wait(timeout=timeout)
    except (TimeoutError, KeyboardInterrupt) as error:
        return {"error": type(error).__name__, "text": str(error), "id": job_id}
    return {
        "status": result.status,
        "value": result.return_value if result.status == "SUCCESSFUL" else None,
        "ended": result.finished_at.timestamp(),
        "back": time.time(),
        "logged": len(connection.queries_log) - before,
    }


def cancel(ids: list[int]) -> Any:
    """Cancel jobs; return what each call returned, and the instant before it, in ns."""
    from steady_queue_core.compat import task_backends

    backend: Any = task_backends["default"]
    return [[time.monotonic_ns(), backend.cancel(str(job_id))] for job_id in ids]


def let_time_pass(hours: int) -> Any:
    """Let everything that sleeps have begun to do so that much earlier."""
    from datetime import timedelta

    from django.db.models import F

    from steady_queue_core.arguments import decode, encode
    from steady_queue_core.models import ScheduledExecution, Step

    by = timedelta(hours=hours)
    sleeps = list(Step.objects.filter(is_sleep=True))
    for each in sleeps:
        each.data = encode(decode(each.data) - by)
    Step.objects.bulk_update(sleeps, ["data"], batch_size=200)
    return ScheduledExecution.objects.update(due_at=F("due_at") - by)


def recur(act: str, key: str, task: str = "", schedule: Any = None, **values: Any) -> Any:
    """Do something to a recurring task at run time; a number is an interval in seconds."""
    import steady_queue_core
    from steady_queue_core.models import RecurringTask

    from . import tasks

    if isinstance(schedule, (int, float)):
        schedule = timedelta(seconds=schedule)
    if act == "schedule":
        chosen = getattr(tasks, task)
        steady_queue_core.schedule_recurring_task(key, chosen, schedule=schedule, **values)
    elif act == "change":
        steady_queue_core.change_recurring_task(key, schedule=schedule, **values)
    elif act == "unschedule":
        steady_queue_core.unschedule_recurring_task(key)
    else:
        result = getattr(RecurringTask.objects.get(key=key), act)()
        return getattr(result, "id", result)
    return None


def write_like_a_web_process(seconds: float, pause: float, work: float) -> Any:
    """Write a row and enqueue a job in one transaction, again and again, on stock settings."""
    from django.db import transaction

    from .models import Note
    from .tasks import work as task

    ids, waits, errors = [], [], []
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        try:
            with transaction.atomic():
                Note.objects.create(text="from the web")
                ids.append(int(task.enqueue(random.random() * work).id))
        except Exception as error:
            errors.append(repr(error))
        waits.append(time.monotonic() - began)
        began = time.monotonic()
        try:
            Note.objects.create(text="alone")
        except Exception as error:
            errors.append(repr(error))
        waits.append(time.monotonic() - began)
        time.sleep(pause)
    return {"ids": ids, "waits": waits, "errors": errors}


def set_weight(queue: str, key: str, weight: float) -> None:
    """Give a key of a fair queue a weight."""
    from steady_queue_core import shares

    shares.set_weight(queue, key, weight)


def enqueue_one_by_one(count: int, pause: float) -> Any:
    """Enqueue one job at a time; return each id with the instant after its commit, in ns."""
    from .tasks import work

    committed = []
    for _ in range(count):
        result = work.enqueue()
        committed.append([int(result.id), time.monotonic_ns()])
        time.sleep(pause)
    return committed


def enqueue_stubbornly(count: int, pause: float) -> Any:
    """Enqueue one job at a time, ignoring failures; return the ids, and the errors."""
    from django.db import close_old_connections

    from .tasks import work

    ids, errors = [], []
    for _ in range(count):
        try:
            ids.append(int(work.enqueue(0.01).id))
        except Exception as error:
            errors.append(repr(error))
            close_old_connections()
        time.sleep(pause)
    return {"ids": ids, "errors": errors}


def make_batches(seconds: float, number: int) -> Any:
    """Enqueue a batch with another one in it; return the ids of both."""
    from .batches import make

    return make(seconds, number)


def make_examples() -> Any:
    """Enqueue a chain, a group and a workflow; return the ids of their batches."""
    from . import workflows

    return workflows.make_examples()


def make_random(seed: int, size: int, seconds: float) -> Any:
    """Enqueue a random workflow; return the id of its batch."""
    from . import workflows

    return workflows.make_random(seed, size, seconds)


def serve_all(customers: int, seconds: float) -> Any:
    """Enqueue a call for each customer, and wait for all."""
    from . import sharded

    return sharded.serve_all(customers, seconds)


def repair_batches() -> Any:
    """Look for batches that are stuck; return how many rows were repaired."""
    from steady_queue_core.models import Job
    from steady_queue_core.models.operations.batch_maintenance import BatchMaintenance

    return BatchMaintenance("default", Job.objects.all()).do()


def main() -> None:
    django.setup()
    functions: dict[str, Callable[..., Any]] = {
        function.__name__: function
        for function in (
            cancel,
            enqueue,
            enqueue_one_by_one,
            enqueue_stubbornly,
            let_time_pass,
            make_batches,
            make_examples,
            make_random,
            recur,
            repair_batches,
            serve_all,
            set_weight,
            wait_for_end,
            write_like_a_web_process,
        )
    }
    # Output of the project must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from django.db import close_old_connections
    from django.utils.module_loading import import_string

    for line in sys.stdin:
        name, arguments = json.loads(line)
        close_old_connections()  # As at the beginning of each request.
        try:
            function = functions[name] if name in functions else import_string(name)
            answer = {"value": function(**arguments)}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
