"""A queue that is well, and what makes it ill."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from steady_queue_core import __version__
from steady_queue_core.dialects import portable
from steady_queue_core.doctor import Finding, examine, examine_job
from steady_queue_core.models import Process, Statistic
from steady_queue_core.models.process import register
from steady_queue_core.statistics.tally import Tally

from ..models.everywhere import Jobs

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86_400))
TASK = "tests.app.tasks.noop"


class Ward(Jobs):
    """A queue with jobs that tests make, and with a live process of each kind."""

    def __init__(self, using: str) -> None:
        super().__init__(using)
        # As the processes do when they start.
        self.dialect.prepare(self.connection, impatient=False)
        self.processes.filter(pk=self.worker.id).delete()
        self.supervisor = self.start("supervisor")
        self.worker = self.start("worker", queues=["*"], threads=3)
        self.start("dispatcher")
        self.start("scheduler")

    @property
    def processes(self) -> Any:
        return Process.objects.using(self.using)

    def start(self, kind: str, name: str = "", **metadata: Any) -> Any:
        """Register a process as if it ran."""
        return register(
            self.using, kind=kind, name=name or f"{kind}-1", pid=17, hostname="web-1",
            supervisor_id=None, metadata=json.dumps({"version": __version__, **metadata}),
        )  # fmt: skip

    def stop(self, *kinds: str) -> None:
        """Let the processes of these kinds end."""
        self.processes.filter(kind__in=kinds).delete()

    def silence(self, kind: str, since: timedelta = HOUR) -> None:
        """Let the processes of a kind send no heartbeat any more."""
        self.age(self.processes.filter(kind=kind), last_heartbeat_at=since)

    def age(self, rows: Any, **columns: timedelta) -> None:
        """Set columns of rows to times in the past."""
        present = self.present(self.using)
        rows.update(**{name: portable.storable(present - age) for name, age in columns.items()})

    def rows(self, model: Any) -> Any:
        return model.objects.using(self.using)

    def ready(self, count: int = 1, queue_name: str = "default", **fields: Any) -> list[int]:
        fields.setdefault("task_path", TASK)
        return super().ready(count, queue_name, **fields)


class Cause(NamedTuple):
    """Why something does not run, and what the doctor calls it."""

    code: str
    #: Plants it; returns the id of the job to ask about, or ``None`` to ask about the whole.
    plant: Callable[[Ward], int | None]
    #: What the text says among other things.
    said: str
    #: What the remedy says.
    advised: str

    @property
    def title(self) -> str:
        return self.plant.__name__.replace("_", "-")


CAUSES: list[Cause] = []


def cause(code: str, said: str = "", advised: str = "") -> Callable[[Any], Any]:
    """Add a function that plants a cause to the table."""

    def add(plant: Any) -> Any:
        CAUSES.append(Cause(code, plant, said, advised))
        return plant

    return add


def diagnosis(ward: Ward, job_id: int | None) -> list[Finding]:
    """Return what the doctor says."""
    return examine(ward.using) if job_id is None else examine_job(job_id, ward.using)


def usual(ward: Ward, task: str, took: timedelta) -> None:
    """Have a task take so long, as a rule."""
    minute = int(ward.present(ward.using).timestamp() // 60) - 30
    tally = Tally(finished=50)
    for _ in range(50):
        tally.note_run(int(took.total_seconds() * 1000))
    ward.rows(Statistic).create(
        span=1, minute=minute, stored_minute=minute, queue_name="default", task_path=task,
        writer=1, **tally.values(),
    )  # fmt: skip
