"""The exceptions that Steady Queue raises.

::

    SteadyQueueError
        DialectError (also django ImproperlyConfigured)
            DialectNotFound      no installed plugin drives a database
            DialectConflict      two plugins drive the same database
            DialectUnsupported   the plugin refuses this server
            DialectInvalid       a plugin is incomplete, misspelt or does not load
        ProcessExitError         a worker or task process ended while it was running a job
        ReportedTaskError        a task failed in a task process (never stored)
        ThreadTerminatedError    a worker thread ended while it was running a job
        ProcessPrunedError       a process stopped its heartbeat while it held a job
        ProcessMissingError      a job was held by an unregistered process
        StateMissingError        a job had not ended, and was in no state
        UnregisteredTaskError    a job names a task that this process does not know
        TooManySnoozesError      a job has snoozed as often as it may
        TooManyCrashesError      a job has taken as many processes along as it may
        NotRepeatedError         a job may have started, and is to start at most once
        UndeliverableError       a job cannot be delivered as it was enqueued
        TransactionEndedError    a task has ended the transaction that it is part of
        RollbackRequestedError   a task has marked that transaction for a rollback
        OutsideTransactionError  a task writes to another database than that of its transaction
        TaskExpired              a job had not started when it expired
        DuplicateTask            another job has the unique key of a call, or of a job
        QueueFull                a queue is as long as it may become
        PartlyEnqueued           a shard refused calls after another one had stored others
        TaskTimeout (also TimeoutError) an attempt took longer than it may
        AlreadyFinished          a batch takes no more jobs
        BatchDoesNotExist        no batch has the id
        Preempted                an attempt has lost its claim, and is to stop
        CheckpointRefusedError   a task cannot store a checkpoint in its transaction
        StepRefusedError         a task can take no steps, or not sleep, as it is delivered
        StepOrderError           a task has changed the order of its steps while a job was at them
        MigrationsMissing        the tables do not exist yet
        UncopiableError          a job cannot be enqueued once more
        UndiscardableError       a running or finished job cannot be discarded
        SupervisorContextError   a supervisor cannot run where it was started
        RecurringTaskError
            RecurringTaskExistsError   the key of a new recurring task is taken
            StaticRecurringTaskError   a task in the code cannot be changed at run time
            UnknownRecurringTaskError  no recurring task has the key
            UnusableRecurringTaskError the row of a recurring task cannot be run

    BaseException
        TaskCancelled            a job was cancelled
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured


class SteadyQueueError(Exception):
    """Base class of the exceptions of Steady Queue."""


class DialectError(SteadyQueueError, ImproperlyConfigured):
    """A database cannot be used because of its dialect plugin."""


class DialectNotFound(DialectError):
    """No installed dialect plugin drives a database."""


class DialectConflict(DialectError):
    """More than one dialect plugin drives a database and none is pinned."""


class DialectUnsupported(DialectError):
    """A dialect plugin drives the database, but not this version or mode of it."""


class DialectInvalid(DialectError):
    """A dialect plugin cannot be loaded, or breaks its contract."""


class ProcessExitError(SteadyQueueError):
    """A worker process, or a task process, ended while it was running this job."""


class ReportedTaskError(SteadyQueueError):
    """Stands, in a worker and for receivers of its signals, for an exception that a task has raised
    in a task process. Its traceback there is a note of this one."""

    def __init__(self, exception_class: str, message: str) -> None:
        super().__init__(f"{exception_class}: {message}" if message else exception_class)
        #: Dotted path of the class of the exception, and its message.
        self.exception_class, self.message = exception_class, message


class ThreadTerminatedError(SteadyQueueError):
    """A worker thread ended while it was running this job."""


class ProcessPrunedError(SteadyQueueError):
    """The heartbeat of a process expired while it held this job."""


class ProcessMissingError(SteadyQueueError):
    """The process that claimed the job is no longer registered."""


class StateMissingError(SteadyQueueError):
    """A job had not ended, and no row of the database said in which state it was."""


class UnregisteredTaskError(SteadyQueueError):
    """A job names a task that is not registered in this process."""


class TooManySnoozesError(SteadyQueueError):
    """A job has snoozed as often as it may."""


class TooManyCrashesError(SteadyQueueError):
    """A job has ended as many processes that ran it as ``max_crashes`` allows."""


class NotRepeatedError(SteadyQueueError):
    """A job that is delivered at most once has started, or may have, and came to no end."""


class UndeliverableError(SteadyQueueError):
    """A job cannot be delivered as it was enqueued: its task, or the settings, have changed."""


class TransactionEndedError(SteadyQueueError):
    """A task that is delivered transactionally has ended its transaction, or tried to. What it had
    committed itself stays; it is not retried."""


class RollbackRequestedError(SteadyQueueError):
    """A task that is delivered transactionally has returned, although its transaction was marked
    for a rollback, or broken by an error of the database. It was rolled back."""


class OutsideTransactionError(SteadyQueueError):
    """A task that is delivered transactionally writes to another database, where that is not part
    of its transaction."""


class TaskExpired(SteadyQueueError):
    """A job had not started when it expired, and never starts."""


class DuplicateTask(SteadyQueueError):
    """Another job has the unique key of a call, which is not enqueued then, or of a failed job,
    which is not retried."""

    def __init__(self, message: str, *, result: Any = None, job_id: int | None = None) -> None:
        super().__init__(message)
        #: The result of the other job, for a call.
        self.result = result
        #: The id of the other job, if it is stored.
        self.job_id = job_id


class QueueFull(SteadyQueueError):
    """A queue is as long as ``queue_limits`` allows. The call, or all calls of a bulk, were not
    enqueued."""

    def __init__(
        self, message: str, *, queue_name: str = "", length: int = 0, limit: int = 0
    ) -> None:
        super().__init__(message)
        #: The queue, how many ready jobs it has, at least, and how many it may have.
        self.queue_name, self.length, self.limit = queue_name, length, limit


class PartlyEnqueued(SteadyQueueError):
    """A shard of a sharded backend has refused calls of a bulk, or failed, after another one had
    stored others. The exception that says why is its ``__cause__``."""

    def __init__(self, message: str, *, stored: Mapping[int, Any] | None = None) -> None:
        super().__init__(message)
        #: The results of the calls that are stored, by their index in the bulk.
        self.stored = dict(stored or {})


class AlreadyFinished(SteadyQueueError):
    """A batch takes no more jobs: it has ended, or was cancelled."""


class BatchDoesNotExist(SteadyQueueError):
    """No batch has this id, or it was cleared."""


class TaskTimeout(SteadyQueueError, TimeoutError):
    """An attempt took longer than its time-out. Raised inside a task that runs in a thread; a
    coroutine gets ``asyncio.CancelledError``."""

    def __init__(self, message: str = "The attempt has taken longer than its time-out.") -> None:
        super().__init__(message)


class Preempted(SteadyQueueError):
    """This attempt has lost its claim: the job runs elsewhere, or has ended. The task is to stop;
    whatever comes of it is not stored."""


class CheckpointRefusedError(SteadyQueueError):
    """A task that is delivered transactionally stores a checkpoint, which would be rolled back with
    everything else."""


class StepRefusedError(SteadyQueueError):
    """A task takes a step that would be rolled back with it, or sleeps and is to start at most
    once."""


class StepOrderError(SteadyQueueError):
    """A task takes its steps in another order than an attempt before. The job fails without another
    attempt; what is stored of it stays."""


class MigrationsMissing(SteadyQueueError):
    """The tables of Steady Queue do not exist in the database yet."""


class UncopiableError(SteadyQueueError):
    """A job cannot be enqueued once more."""


class UndiscardableError(SteadyQueueError):
    """A running or finished job cannot be discarded."""


#: What the error of a job says that was cancelled while it waited.
CANCELLED_BEFORE_START = "The job was cancelled before it started."


class TaskCancelled(BaseException):
    """The job was cancelled. Raised inside its task if that runs in a thread; a coroutine gets
    ``asyncio.CancelledError``. Not an ``Exception``: a task that handles all of these still ends.
    """

    def __init__(self, message: str = "The job was cancelled while it ran.") -> None:
        super().__init__(message)


class OutboxFullError(SteadyQueueError):
    """A task has left too many calls to the transaction of its outcome."""


class OutboxClosedError(SteadyQueueError):
    """A task has returned, and something that it has left behind calls ``context.enqueue()``."""


class PrometheusMissing(SteadyQueueError):
    """The package ``prometheus_client`` is not installed."""


class SupervisorContextError(SteadyQueueError):
    """A supervisor cannot run here: in a thread or inside a transaction."""


class RecurringTaskError(SteadyQueueError):
    """An operation on a recurring task is not possible."""


class RecurringTaskExistsError(RecurringTaskError):
    """The key of a new recurring task is taken."""


class StaticRecurringTaskError(RecurringTaskError):
    """A recurring task in the code cannot be added, changed or removed at run time."""


class UnknownRecurringTaskError(RecurringTaskError):
    """No recurring task has this key."""


class UnusableRecurringTaskError(RecurringTaskError):
    """The row of a recurring task cannot be run; the message says why."""
