"""The tables: jobs, their executions by state, and the processes that work on them.

One noun a module, and reading it. No logic of processes, and nothing that a worker does for each
job.
"""

from __future__ import annotations

from .batch import BatchMember, Dependency, JobBatch
from .checkpoint import Checkpoint
from .execution import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from .job import Job
from .overview import Overview
from .pause import Pause
from .process import Process
from .process_end import ProcessEnd
from .queue import Queue
from .rate import Rate
from .recurring import RecurringExecution, RecurringTask
from .retention import Retention
from .semaphore import Permit, Semaphore
from .share import Share
from .statistic import Sample, Statistic
from .step import Step
from .turn import Turn
from .unique_key import UniqueKey

__all__ = [
    "BatchMember",
    "BlockedExecution",
    "Checkpoint",
    "ClaimedExecution",
    "Dependency",
    "FailedExecution",
    "Job",
    "JobBatch",
    "Overview",
    "Pause",
    "Permit",
    "Process",
    "ProcessEnd",
    "Queue",
    "Rate",
    "ReadyExecution",
    "RecurringExecution",
    "RecurringTask",
    "Retention",
    "Sample",
    "ScheduledExecution",
    "Semaphore",
    "Share",
    "Statistic",
    "Step",
    "Turn",
    "UniqueKey",
    "WaitingExecution",
]
