"""Patient: the queue of one database, as it is at one moment, and the rounds of examinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from ..configuration import ConfigurationError, ResolvedOptions, load
from ..configured_backends import backends_on, options_on, queue_databases
from ..dialects import portable
from ..dialects.database import Database
from ..dialects.observation import kept_apart
from ..listings import wording
from ..listings.counts import BoundedCount, count_each
from ..listings.processes import ListedProcess, listed_processes
from ..listings.queues import ListedQueue, listed_queues
from ..listings.recurring import ListedSchedule, listed_schedules
from ..models import ScheduledExecution
from ..processes.base.registration import ProcessLocation
from ..processes.supervisor.launch import import_tasks
from ..tasks.registry import known_task
from .finding import Finding, command, info, problem

#: How much later than its polls a dispatcher may be.
LATE = timedelta(seconds=30)
ENDED = "ended"
CONNECT = (
    "See whether the server runs and answers, and whether the address, user and password in "
    "DATABASES are right. The queue's processes wait until it is back."
)


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

    def process(self, pk: int) -> ListedProcess | None:
        """Return the process with that id, if it is registered."""
        return next((each for each in self.processes if each.pk == pk), None)

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


def marked(processes: list[ListedProcess]) -> list[ListedProcess]:
    """Return the processes; those that have certainly ended do not count as live."""
    for process in processes:
        if ProcessLocation.of(process.row).is_dead(process.row.pid):
            process.state = ENDED
    return processes


Examination = Callable[[Patient], Iterable[Finding]]


def findings_of(examinations: Sequence[Examination], patient: Patient) -> list[Finding]:
    """Return what these examinations find."""
    found: list[Finding] = []
    for examination in examinations:
        try:
            with kept_apart(connections[patient.using]):
                found += examination(patient)
        except Exception as error:  # Whatever it is: the others may find the cause.
            connection = connections[patient.using]
            if patient.database.dialect.is_lost_connection(connection, error):
                return [unreachable(patient.using, error)]
            found.append(_not_examined(examination, error))
    return found


def unreachable(using: str, error: Exception) -> Finding:
    """Return the finding that a database does not answer."""
    said = wording.line(error) or type(error).__name__
    return problem("database-unreachable", f'Database "{using}" does not answer: {said}', CONNECT)


def few(findings: Iterator[Finding], most: int = 5) -> Iterator[Finding]:
    """Yield the first ones of alike findings."""
    for _, finding in zip(range(most), findings, strict=False):
        yield finding


def _not_examined(examination: Examination, error: Exception) -> Finding:
    module = getattr(examination, "__module__", "").rpartition(".")[2]
    what = f"{module}: {getattr(examination, '__name__', '')}".replace("_", " ")
    return info(
        "not-examined",
        f"Could not be examined ({what}): {type(error).__name__}: {wording.line(error)[:500]}",
        "If a privilege is missing, grant it, or have somebody with more rights run the doctor.",
    )
