"""What projects and migrations name stays as it is: import paths, settings, tables, migration."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

import steady_queue_core
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.configuration import Configuration
from steady_queue_core.migrations import __path__ as migrations

pytestmark = pytest.mark.shared

PATHS = """
steady_queue_core: AlreadyFinished Batch BatchDoesNotExist DuplicateTask Preempted QueueFull
    Unique
    BatchResult Previous ResultOf Workflow chain group
    __version__ aenqueue_many call change_recurring_task enqueue_many limits_concurrency recurring
    schedule_recurring_task task unschedule_recurring_task
steady_queue_core.admin: JobAdmin ProcessAdmin QueuesAdmin RecurringTaskAdmin SemaphoreAdmin
    ShareAdmin register
steady_queue_core.arguments: DeserializationError TaskArgumentError
steady_queue_core.backend: SteadyQueueBackend
steady_queue_core.concurrency: limits_concurrency
steady_queue_core.configuration: Configuration ConfigurationError
steady_queue_core.configuration.options: HIDDEN_ARGUMENTS
steady_queue_core.dialects: API_VERSION ClaimedJob Dialect DialectConflict DialectError DialectInfo
    DialectInvalid DialectNotFound DialectUnsupported Dispatched Ending EnqueuedJob Limit NewJob
    Outcome ProcessIdentity QueueSelector Wakeup dialect_for get_logger hookimpl portable tables
steady_queue_core.conformance: DialectConformance
steady_queue_core.embedding: EmbeddedQueue
steady_queue_core.errors: AlreadyFinished BatchDoesNotExist CheckpointRefusedError DialectConflict
    DialectError DialectInvalid DialectNotFound DialectUnsupported DuplicateTask MigrationsMissing
    NotRepeatedError OutsideTransactionError Preempted ProcessExitError ProcessMissingError
    ProcessPrunedError QueueFull RecurringTaskError RecurringTaskExistsError RollbackRequestedError
    StateMissingError StaticRecurringTaskError SteadyQueueError StepOrderError StepRefusedError
    TaskCancelled TaskExpired TaskTimeout ThreadTerminatedError TooManyCrashesError
    TransactionEndedError
    UndeliverableError UndiscardableError UnknownRecurringTaskError UnregisteredTaskError
    UnusableRecurringTaskError
steady_queue_core.hooks: on_dispatcher_exit on_dispatcher_start on_dispatcher_stop on_exit
    on_internal_error on_scheduler_exit on_scheduler_start on_scheduler_stop on_start on_stop
    on_task_process_exit on_task_process_start on_worker_exit on_worker_start on_worker_stop
steady_queue_core.logging: JSONFormatter TaskContextFilter TextFormatter
steady_queue_core.middleware: Middleware install uninstall
steady_queue_core.models: BatchMember BlockedExecution Checkpoint ClaimedExecution Dependency
    FailedExecution Job JobBatch Pause Permit Process Queue ReadyExecution RecurringExecution
    RecurringTask Retention ScheduledExecution Semaphore Share Step UniqueKey
    WaitingExecution
steady_queue_core.models.fields: ExactCharField ExactTextField InstantField
steady_queue_core.models.tuning: TuneTables
steady_queue_core.processes: ProcessExitError ProcessMissingError ProcessPrunedError
    ThreadTerminatedError
steady_queue_core.recurring_task: recurring
steady_queue_core.retries: constant exponential
steady_queue_core.routers: SteadyQueueRouter
steady_queue_core.shares: reset_weight set_weight weight_of weights_of
steady_queue_core.signals: InternalErrors ProcessLifecycle QueueLifecycle Recurring process_pruned
    internal_error jobs_claimed jobs_dispatched jobs_settled jobs_unblocked process_beat
    process_polled process_restarted process_started process_stopped process_stopping
    queue_paused queue_resumed recurring_enqueued recurring_missed task_discarded task_lost
    task_process_started task_process_stopped task_retried
steady_queue_core.tasks: SteadyQueueTask SteadyQueueTaskContext SteadyQueueTaskResult task
steady_queue_core.testing: DummyBackend EnqueuedTask ImmediateBackend TaskAssertions
    arun_enqueued_tasks assert_no_tasks_enqueued assert_num_tasks assert_task_enqueued
    captured_tasks enqueued_tasks override_backends run_enqueued_tasks
"""


def test_public_names_are_at_their_paths() -> None:
    entries = PATHS.replace("\n    ", " ").strip().splitlines()
    for module, names in (entry.split(":") for entry in entries):
        missing = [name for name in names.split() if not hasattr(import_module(module), name)]
        assert not missing, f"{module} lacks {missing}"


def test_the_conformance_suite_is_found_at_its_former_address() -> None:
    from steady_queue_core.conformance import DialectConformance

    former = import_module("steady_queue_core.dialects.conformance")
    with pytest.warns(DeprecationWarning, match=r"is steady_queue_core\.conformance now"):
        assert former.DialectConformance is DialectConformance


def test_settings_keep_their_names_and_defaults() -> None:
    assert {name: getattr(steady_queue_core, name) for name in MODULE} == MODULE
    assert _parameters(Configuration.Options) == OPTIONS
    assert _parameters(Configuration.Worker) == WORKER
    assert _parameters(Configuration.Dispatcher) == DISPATCHER
    assert _parameters(Configuration.Scheduler) == SCHEDULER
    assert {each.name: each.default for each in fields(BackendOptions)} == BACKEND


def test_tables_keep_their_names() -> None:
    models = apps.get_app_config("steady_queue").get_models()
    own = [model for model in models if not model._meta.proxy]
    assert sorted(model._meta.db_table for model in own) == TABLES


def test_the_first_migration_stays_as_it_was_released() -> None:
    """A project has applied it: what changes later is another migration."""
    text = (Path(migrations[0]) / "0001_initial.py").read_bytes()
    assert hashlib.sha256(text).hexdigest() == MIGRATION


def _parameters(section: Any) -> dict[str, Any]:
    return {name: each.default for name, each in signature(section).parameters.items()}


MODULE = {
    "process_heartbeat_interval": timedelta(seconds=60),
    "process_alive_threshold": timedelta(minutes=5),
    "shutdown_timeout": timedelta(seconds=5),
    "supervisor_pidfile": None,
    "silence_polling": True,
    "database": None,
    "preserve_finished_jobs": True,
    "clear_finished_jobs_after": timedelta(days=1),
    "default_concurrency_control_period": timedelta(minutes=3),
}
OPTIONS = {
    "workers": None,
    "dispatchers": None,
    "scheduler": None,
    "process_heartbeat_interval": None,
    "process_alive_threshold": None,
    "shutdown_timeout": None,
    "supervisor_pidfile": None,
    "silence_polling": None,
    "supervisor_mode": None,
    "state_directory": None,
    "fork_startup_timeout": timedelta(seconds=30),
    "probe_port": None,
    "probe_address": "127.0.0.1",
    "heartbeat_file": None,
    "metrics_token": None,
    "statistics": True,
    "drain_timeout": None,
    "backends": None,
    "dialects": None,
    "task_modules": (),
    "hidden_arguments": None,
}
WORKER = {
    "queues": ("*",),
    "executor": "threads",
    "threads": 3,
    "coroutines": 100,
    "processes": 1,
    "polling_interval": timedelta(milliseconds=100),
    "fresh_connections": False,
    "prefetch": 500,
    "recycle_after": None,
    "recycle_rss": None,
    "cpu_affinity": None,
}
DISPATCHER = {
    "polling_interval": timedelta(seconds=1),
    "batch_size": 500,
    "concurrency_maintenance": True,
    "concurrency_maintenance_interval": timedelta(minutes=10),
}
SCHEDULER = {"polling_interval": timedelta(seconds=5), "dynamic_tasks_enabled": False}
BACKEND = {
    "alias": "default",
    "database": None,
    "max_attempts": 1,
    "max_snoozes": 1000,
    "delivery": None,
    "max_crashes": 5,
    "backoff": None,
    "preserve_finished_jobs": True,
    "clear_finished_jobs_after": timedelta(days=1),
    "clear_failed_jobs_after": None,
    "expires": None,
    "timeout": None,
    "timeout_grace": timedelta(seconds=10),
    "max_payload_bytes": 2**20,
    "max_payload_depth": 64,
    "payload": None,
    "argument_models": None,
    "enqueue_on_commit": False,
    "unknown_task_patience": timedelta(minutes=10),
    "queue_limits": None,
    "fair_queues": None,
    "middleware": (),
    "error_reporter": None,
}
TABLES = [
    "steady_queue_batch_members",
    "steady_queue_batches",
    "steady_queue_blocked_executions",
    "steady_queue_checkpoints",
    "steady_queue_claimed_executions",
    "steady_queue_dependencies",
    "steady_queue_failed_executions",
    "steady_queue_jobs",
    "steady_queue_pauses",
    "steady_queue_permits",
    "steady_queue_process_ends",
    "steady_queue_processes",
    "steady_queue_rates",
    "steady_queue_ready_executions",
    "steady_queue_recurring_executions",
    "steady_queue_recurring_tasks",
    "steady_queue_retentions",
    "steady_queue_samples",
    "steady_queue_scheduled_executions",
    "steady_queue_semaphores",
    "steady_queue_shares",
    "steady_queue_statistics",
    "steady_queue_steps",
    "steady_queue_turns",
    "steady_queue_unique_keys",
    "steady_queue_waiting_executions",
]
MIGRATION = "be1a81a3e5a9dc871dc8d3e9c339e18c235402e0fcffd17465addc51f9b68895"
