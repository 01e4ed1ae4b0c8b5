"""A database with recurring tasks, and their due times, for tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from steady_queue_core import task
from steady_queue_core.dialects import portable
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import Job, RecurringExecution, RecurringTask
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.scheduler.due_times import DueTimes
from steady_queue_core.processes.scheduler.mirror import mirror
from steady_queue_core.processes.scheduler.recurring_schedule import RecurringSchedule

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86_400))


@task
def greet(name: object = "you", *, loud: bool = False) -> None:
    """Say hello.

    Politely.
    """


@task(queue_name="mail", priority=5, takes_context=True)
def send(context: Any, *addresses: str) -> None:
    """Have a queue and a priority of its own."""


def tasks(using: str, **options: Any) -> dict[str, Any]:
    """Return a ``TASKS`` whose backend keeps its jobs in that database."""
    return {
        "default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"database": using, **options}}
    }


class Recurrence:
    """The recurring tasks of a database, and what was enqueued for them."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.connection, self.dialect = connections[using], dialect_for(using)

    @property
    def tasks(self) -> Any:
        return RecurringTask.objects.using(self.using)

    @property
    def keys(self) -> list[str]:
        return sorted(self.tasks.values_list("key", flat=True))

    def row(self, key: str) -> RecurringTask:
        found: RecurringTask = self.tasks.get(key=key)
        return found

    def present(self) -> datetime:
        """The database's time, without its fraction of a second."""
        return self.dialect.current_time(self.connection).replace(microsecond=0)

    def since(self, key: str, instant: datetime) -> None:
        """Have the task be there since ``instant``."""
        self.tasks.filter(key=key).update(active_since=portable.storable(instant))

    def slots(self, key: str) -> list[datetime]:
        """Return the slots that were enqueued; each has a job of its own."""
        rows = RecurringExecution.objects.using(self.using).filter(task_key=key).order_by("run_at")
        jobs = [row.job_id for row in rows]
        assert Job.objects.using(self.using).filter(pk__in=jobs).count() == len(set(jobs))
        return [portable.aware(row.run_at) for row in rows]

    def jobs(self) -> list[Job]:
        return list(Job.objects.using(self.using).order_by("pk"))

    def calls(self) -> list[tuple[str, int, str]]:
        """Return queue, priority and arguments of each job."""
        return [(job.queue_name, job.priority, job.arguments) for job in self.jobs()]


class Plan(Recurrence):
    """Recurring tasks, their due times, and a clock that goes as the test says."""

    def __init__(self, using: str, *, dynamic: bool = True) -> None:
        super().__init__(using)
        self.dynamic = dynamic
        #: On a full minute of the future: what is added now, was there long before.
        self.clock = self.present().replace(second=0) + 2 * MINUTE
        self.due_times = self.start()

    def start(self) -> DueTimes:
        """Return the due times of another scheduler."""
        return DueTimes(
            QueueDatabase(self.using), RecurringSchedule(self.using, dynamic=self.dynamic)
        )

    def mirror(self) -> None:
        mirror(self.connection, self.dialect)

    def look(self) -> None:
        self.due_times.refresh(self.clock)

    def begin(self) -> None:
        """Look for the first time, at tasks that are there since just now."""
        for key in self.keys:
            self.since(key, self.clock)
        self.due_times = self.start()
        self.look()

    def pass_by(self, duration: timedelta) -> datetime | None:
        """Let time go on, and enqueue a slot of each task that is due then."""
        self.clock += duration
        return self.due_times.enqueue_due(self.clock)

    def slots_from(self, key: str, start: datetime) -> list[timedelta]:
        return [slot - start for slot in self.slots(key)]
