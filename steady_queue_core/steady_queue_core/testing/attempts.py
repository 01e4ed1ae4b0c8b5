"""One attempt at a job, in the calling thread and in the transaction that it is in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from inspect import iscoroutinefunction

from asgiref.sync import async_to_sync
from django.db import DEFAULT_DB_ALIAS, connections

from ..compat import task_started
from ..dialects import ClaimedJob
from ..logging import RunningTask, running_task
from ..processes.base.database import DatabaseClock
from ..processes.base.log_context import attempt_of
from ..processes.worker.attempt import Attempt, RunResult
from ..processes.worker.callbacks import with_callback
from ..processes.worker.refusals import refusal_of
from ..processes.worker.signal_sender import send_signals
from ..processes.worker.task_transaction import is_transactional, only_writes_to
from ..tasks.results import task_of
from ..tasks.task_signals import send_task_signal
from .jobs import Jobs
from .transactions import as_a_worker_would, in_a_transaction


def perform(jobs: Jobs, claim: ClaimedJob, present: datetime | None = None) -> RunResult:
    """Run a claimed job, store what becomes of it, and send the signals. ``present``: the time to
    which the test has moved on, by which the job sleeps."""
    done = with_callback(_run(jobs, claim, present), claim)
    jobs.settle(done.outcome)
    send_signals(done)
    return done


def _run(jobs: Jobs, claim: ClaimedJob, present: datetime | None) -> RunResult:
    clock = DatabaseClock()
    clock.set(claim.claimed_at)
    now = clock.now if present is None else lambda: present
    # The stand-in for an unregistered task raises the same error as a worker.
    task = task_of(claim.task_path, claim.backend_name, claim.queue_name, claim.rank)
    attempt = Attempt(claim, task, jobs.backend_of(claim), jobs.worker, clock.now(), now=now)
    is_coroutine = iscoroutinefunction(task.func)
    if claim.is_cancelled:
        return attempt.cancelled(clock.now())
    if (refused := refusal_of(claim, claim.claimed_at)) is not None:
        return attempt.never_started(refused, clock.now())
    running = RunningTask(claim.task_path, str(claim.job_id), attempt_of(claim))
    before = running_task.set(running)
    try:
        with as_a_worker_would():
            attempt.decode()
            if task.takes_context and is_coroutine:
                attempt.notes.load()
            send_task_signal(task_started, type(attempt.backend), attempt.task_result)
            with _transaction_of(attempt):
                value = async_to_sync(attempt.acall)() if is_coroutine else attempt.call()
    except KeyboardInterrupt:
        raise  # Ctrl-C in the test runner.
    except BaseException as error:
        return attempt.raised(error, clock.now)
    else:
        return attempt.succeeded(value, clock.now)
    finally:
        running_task.reset(before)


def _transaction_of(attempt: Attempt) -> AbstractContextManager[None]:
    """Return the transaction that the task is part of, if it is delivered transactionally."""
    if not is_transactional(attempt):
        return nullcontext()
    backend = attempt.backend
    if backend.stores_jobs:
        return in_a_transaction(backend.database)
    using = backend.settings.database or DEFAULT_DB_ALIAS
    # Jobs in memory need no database; only one that the test uses is looked at.
    opened = connections[using].in_atomic_block
    return in_a_transaction(using) if opened else only_writes_to(using)
