"""The exceptions that Steady Queue raises.

::

    SteadyQueueError
        DialectError (also django ImproperlyConfigured)
            DialectNotFound      no installed plugin drives a database
            DialectConflict      two plugins drive the same database
            DialectUnsupported   the plugin refuses this server
            DialectInvalid       a plugin is incomplete, misspelt or does not load
        ProcessExitError         a worker process ended while it ran a job
        ThreadTerminatedError    a worker thread ended while it ran a job
        ProcessPrunedError       a process stopped its heartbeat while it held a job
        ProcessMissingError      a job was held by a process that is not registered
        UnregisteredTaskError    a job names a task that this process does not know
        MigrationsMissing        the tables are not there yet
        UndiscardableError       a job that runs or has finished was to be discarded
        SupervisorContextError               a supervisor cannot run where it was called
        RecurringTaskError
            RecurringTaskExistsError   a key that is to be scheduled at run time is taken
            StaticRecurringTaskError   a task of the code was to be changed at run time
            UnknownRecurringTaskError  no recurring task has the key
            UnusableRecurringTaskError a row of a recurring task cannot be run
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured


class SteadyQueueError(Exception):
    """Root of everything that Steady Queue raises on its own account."""


class DialectError(SteadyQueueError, ImproperlyConfigured):
    """A database cannot be used because of its dialect plugin."""


class DialectNotFound(DialectError):
    """No installed dialect plugin drives a database."""


class DialectConflict(DialectError):
    """More than one dialect plugin drives a database and none is pinned."""


class DialectUnsupported(DialectError):
    """A dialect plugin knows the database but refuses this version or mode of it."""


class DialectInvalid(DialectError):
    """A dialect plugin cannot be loaded or does not fulfil the contract."""


class ProcessExitError(SteadyQueueError):
    """A worker process ended while it was running this job."""


class ThreadTerminatedError(SteadyQueueError):
    """A worker that was a thread of its supervisor ended while it was running this job."""


class ProcessPrunedError(SteadyQueueError):
    """A process was found dead (its heartbeat had expired) while it held this job."""


class ProcessMissingError(SteadyQueueError):
    """A job was claimed by a process that is not registered any more."""


class UnregisteredTaskError(SteadyQueueError):
    """A job names a task that is not among the decorated tasks of this process."""


class MigrationsMissing(SteadyQueueError):
    """The tables of Steady Queue do not exist in the database yet."""


class UndiscardableError(SteadyQueueError):
    """A job that runs or has finished cannot be discarded."""


class SupervisorContextError(SteadyQueueError):
    """A supervisor cannot run here: in a thread, or within a transaction."""


class RecurringTaskError(SteadyQueueError):
    """Something was asked of a recurring task that cannot be done."""


class RecurringTaskExistsError(RecurringTaskError):
    """The key of a recurring task that is to be scheduled is taken."""


class StaticRecurringTaskError(RecurringTaskError):
    """A recurring task that the code has was to be added, changed or removed at run time."""


class UnknownRecurringTaskError(RecurringTaskError):
    """No recurring task has this key."""


class UnusableRecurringTaskError(RecurringTaskError):
    """The row of a recurring task cannot be run as it is; the message says why."""
