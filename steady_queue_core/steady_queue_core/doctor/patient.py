"""Patient: the queue of one database, as it is at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property

from django.core.exceptions import ImproperlyConfigured

from ..configuration import ConfigurationError, ResolvedOptions, load
from ..configured_backends import backends_on, options_on, queue_databases
from ..dialects import portable
from ..dialects.database import Database
from ..listings.counts import BoundedCount, count_each
from ..listings.processes import ListedProcess, listed_processes
from ..listings.queues import ListedQueue, listed_queues
from ..listings.recurring import ListedSchedule, listed_schedules
from ..models import ScheduledExecution
from ..processes.base.registration import ProcessLocation
from ..processes.supervisor.launch import import_tasks
from ..tasks.definition import known_task
from .finding import command

#: How much later than its polls a dispatcher may be.
LATE = timedelta(seconds=30)


class Patient:
    """What several examinations look at. Each is read when it is first asked for, and bounded."""

    def __init__(self, using: str) -> None:
        self.using = using

    def know(
        self,
        *,
        present: datetime,
        processes: list[ListedProcess],
        queues: list[ListedQueue],
        overdue: BoundedCount,
    ) -> None:
        """Take what somebody has read already."""
        vars(self).update(present=present, processes=processes, queues=queues, overdue=overdue)

    @cached_property
    def database(self) -> Database:
        return Database.of(self.using)

    @cached_property
    def present(self) -> datetime:
        """The database's time."""
        return self.database.current_time()

    @cached_property
    def options(self) -> ResolvedOptions:
        """The settings of the processes of this database; the defaults if these are wrong."""
        try:
            return options_on(self.using)
        except ImproperlyConfigured:
            return load(None)  # Reported by the system checks.

    @cached_property
    def processes(self) -> list[ListedProcess]:
        return marked(listed_processes(self.using))

    @cached_property
    def queues(self) -> list[ListedQueue]:
        """The queues with their ready and running jobs."""
        return listed_queues(self.using, self.processes, states=["running"])

    @cached_property
    def schedules(self) -> list[ListedSchedule]:
        """The recurring tasks that are enabled."""
        return [each for each in listed_schedules(self.using, next_runs=1) if each.row.enabled]

    def queue(self, name: str) -> ListedQueue | None:
        """Return the queue of that name, if it is not empty."""
        return next((each for each in self.queues if each.name == name), None)

    def live(self, kind: str) -> list[ListedProcess]:
        """Return the live processes of a kind."""
        return [each for each in self.processes if each.is_live and each.row.kind == kind]

    @cached_property
    def import_failure(self) -> str:
        """Why the task modules of the settings cannot be imported; empty once they are."""
        try:
            import_tasks(self.options)
        except ConfigurationError as error:
            return str(error)
        return ""

    def knows(self, task_path: object) -> bool:
        """Whether the project has a task of that path, as its workers see it."""
        return not self.import_failure and known_task(str(task_path)) is not None

    @property
    def is_alive(self) -> bool:
        """Whether any process lives."""
        return any(each.is_live for each in self.processes)

    def command(self, first: str, *values: object, options: Sequence[str] = ()) -> str:
        """Return a subcommand that can be pasted, for this database."""
        with suppress(ImproperlyConfigured):  # Reported by the system checks.
            if len(queue_databases()) > 1 and (aliases := list(backends_on(self.using))):
                options = [*options, "--backend", aliases[0]]
        return command(first, *values, options=options)

    @property
    def dispatch_delay(self) -> timedelta:
        """How much later than it was due a scheduled job may become ready."""
        polls = (each.polling_interval for each in self.options.dispatchers)
        return LATE + max(polls, default=timedelta(0))

    @cached_property
    def overdue(self) -> BoundedCount:
        """The scheduled jobs that should have become ready by now."""
        rows = ScheduledExecution.objects.using(self.using).filter(
            due_at__lt=portable.storable(self.present - self.dispatch_delay)
        )
        [count] = count_each(self.using, [rows.order_by("due_at", "rank", "job")], "due_at")
        return count


ENDED = "ended"


def marked(processes: list[ListedProcess]) -> list[ListedProcess]:
    """Return the processes; those that have certainly ended do not count as live."""
    for process in processes:
        if ProcessLocation.of(process.row).is_dead(process.row.pid):
            process.state = ENDED
    return processes
