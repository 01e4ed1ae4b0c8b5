"""Steady Queue: a background task queue for Django that lives in the project's own database.

The module-level settings below are defaults for the options in ``STEADY_QUEUE`` and ``TASKS``.
A settings file may assign them.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .batches.batch import Batch
    from .batches.chain import chain
    from .batches.group import group
    from .batches.results import BatchResult
    from .batches.workflow import Workflow
    from .bulk import aenqueue_many, call, enqueue_many
    from .dynamic_tasks import (
        change_recurring_task,
        schedule_recurring_task,
        unschedule_recurring_task,
    )
    from .endings import Discard, Fail, Retry, Snooze
    from .errors import (
        AlreadyFinished,
        BatchDoesNotExist,
        DuplicateTask,
        PartlyEnqueued,
        Preempted,
        QueueFull,
    )
    from .features.concurrency.limit import limits_concurrency
    from .features.rates.limit import limits_rate
    from .features.unique.options import Unique
    from .schedules.definition import recurring
    from .tasks.definition import task

    # An argument of any type may be one of these.
    def Previous() -> Any: ...
    def ResultOf(step: int) -> Any: ...


__version__ = "0.1.0"

__all__ = [
    "AlreadyFinished",
    "Batch",
    "BatchDoesNotExist",
    "BatchResult",
    "Discard",
    "DuplicateTask",
    "Fail",
    "PartlyEnqueued",
    "Preempted",
    "Previous",
    "QueueFull",
    "ResultOf",
    "Retry",
    "Snooze",
    "Unique",
    "Workflow",
    "__version__",
    "aenqueue_many",
    "call",
    "chain",
    "change_recurring_task",
    "enqueue_many",
    "group",
    "limits_concurrency",
    "limits_rate",
    "recurring",
    "schedule_recurring_task",
    "task",
    "unschedule_recurring_task",
]

#: Interval between the heartbeats of a process.
process_heartbeat_interval = timedelta(seconds=60)
#: Time after its last heartbeat when a process counts as dead.
process_alive_threshold = timedelta(minutes=5)
#: Time that running tasks get to finish when the supervisor stops.
shutdown_timeout = timedelta(seconds=5)
#: A lock file that prevents a second supervisor; ``None``: no file.
supervisor_pidfile: str | Path | None = None
#: Whether the SQL log omits the statements of the queue's processes.
silence_polling = True
#: Alias of the database that holds the jobs; ``None``: the database routers decide.
database: str | None = None
#: Whether finished jobs stay in the database.
preserve_finished_jobs = True
#: How long finished jobs are kept.
clear_finished_jobs_after = timedelta(days=1)
#: Default ``duration`` of a concurrency limit.
default_concurrency_control_period = timedelta(minutes=3)


#: Modules of the names that chains, groups and workflows have.
_OF_BATCHES = {
    "BatchResult": "results",
    "Previous": "placeholders",
    "ResultOf": "placeholders",
    "Workflow": "workflow",
    "chain": "chain",
    "group": "group",
}


_ERRORS = {
    "AlreadyFinished", "BatchDoesNotExist", "DuplicateTask", "PartlyEnqueued", "Preempted",
    "QueueFull",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Public names are imported on first use: they need configured settings, unlike this module.
    if name == "task":
        from .tasks.definition import task

        return task
    if name == "recurring":
        from .schedules.definition import recurring

        return recurring
    if name == "limits_concurrency":
        from .features.concurrency.limit import limits_concurrency

        return limits_concurrency
    if name == "limits_rate":
        from .features.rates.limit import limits_rate

        return limits_rate
    if name in ("Discard", "Fail", "Retry", "Snooze"):
        from . import endings

        return getattr(endings, name)
    if name == "Batch":
        from .batches.batch import Batch

        return Batch
    if name in _OF_BATCHES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.batches.{_OF_BATCHES[name]}"), name)
    if name in _ERRORS:
        from . import errors

        return getattr(errors, name)
    if name == "Unique":
        from .features.unique.options import Unique

        return Unique
    if name in ("call", "enqueue_many", "aenqueue_many"):
        from . import bulk

        return getattr(bulk, name)
    if name in ("schedule_recurring_task", "change_recurring_task", "unschedule_recurring_task"):
        from . import dynamic_tasks

        return getattr(dynamic_tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
