"""Why jobs wait although processes are registered, and what is seen on their host alone."""

from __future__ import annotations

import json
import os
from datetime import timedelta

from django.test import override_settings

from steady_queue_core.conformance.base import limited_job
from steady_queue_core.models import BlockedExecution, ClaimedExecution
from steady_queue_core.processes.base.registration import ProcessLocation

from ..models.recurrence import tasks
from .ward import HOUR, MINUTE, TASK, Ward, cause

SEVERAL_BEATS = timedelta(minutes=4)


def end(ward: Ward, *kinds: str) -> None:
    """Let processes of this host end without a word: their pid is that of another one now."""
    here = ProcessLocation.here(None).as_metadata()
    known = json.dumps({**here, "birth": f"not {here['birth']}", "queues": ["*"], "threads": 3})
    ward.processes.filter(kind__in=kinds).update(pid=os.getpid(), metadata=known)


@cause("process-none", "pid", "manage.py steady_queue")
def processes_that_were_all_killed_a_moment_ago(ward: Ward) -> None:
    ward.ready(2)
    end(ward, "supervisor", "worker", "dispatcher", "scheduler")


@cause("claim-stale", "ended) has claimed 1 job", "within process_alive_threshold")
def a_worker_that_was_killed_a_moment_ago(ward: Ward) -> None:
    ward.claimed(1)
    end(ward, "worker")
    ward.start("worker", "worker-2", queues=["*"], threads=3)


@cause("supervisor-missing", "no supervisor is", "manage.py steady_queue")
def a_supervisor_that_was_killed_a_moment_ago(ward: Ward) -> None:
    end(ward, "supervisor")


@cause("heartbeat-late", "has sent no heartbeat for 4 min", "See whether it is stopped")
def a_worker_that_is_stopped(ward: Ward) -> None:
    ward.claimed(1)
    ward.silence("worker", SEVERAL_BEATS)


@cause("clock-set-back", "59 min", "See that the clock of the server")
def a_clock_that_was_set_back(ward: Ward) -> None:
    ward.silence("dispatcher", -HOUR)


@cause("task-unknown", "The task shop.gone, which 3 of the next jobs name", "task_modules")
def jobs_whose_task_is_not_there(ward: Ward) -> None:
    ward.ready(2, task_path="shop.gone")
    ward.ready(1, task_path="shop.gone", delay=HOUR)


@cause("limit-busy", "2 jobs wait for the concurrency key 'account', for up to 10 min", "'to'")
def a_key_that_is_held_for_long(ward: Ward) -> None:
    jobs = [limited_job("account", task_path=TASK) for _ in range(3)]
    ward.dialect.enqueue(ward.connection, jobs)
    ward.claim(1)
    ward.age(ward.rows(BlockedExecution), created_at=10 * MINUTE)
    ward.age(ward.rows(ClaimedExecution), created_at=10 * MINUTE)


@cause("queue-full", 'The queue "default" has the 2 ready jobs', "raise the limit")
def a_queue_that_is_full(ward: Ward) -> None:
    # The settings of the test, which are put back at its end.
    override_settings(TASKS=tasks(ward.using, queue_limits={"*": 2})).enable()
    ward.ready(2)
