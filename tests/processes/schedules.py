"""Projects with recurring tasks, and what their schedulers have done."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import dedent
from typing import Any

from ..servers.address import Address
from . import proc
from .conftest import MakeProject
from .harness import Project
from .scenarios import queue
from .waiting import wait_for

MODULE = "schedules.py"
#: The recurring tasks of a project, unless a test has its own.
EVERY_SECOND = """
from datetime import timedelta
from steady_queue_core import recurring
from tests.faultapp.tasks import work

recurring(schedule=timedelta(seconds=1), key="tick")(work)
"""


def write_schedules(project: Project, text: str) -> None:
    (project.folder / MODULE).write_text(dedent(text))


def scheduled(
    make_project: MakeProject,
    text: str = EVERY_SECOND,
    *,
    extra: str = "",
    on: str = "default",
    at: Address | None = None,
    **options: Any,
) -> Project:
    """Make a project with one worker and these recurring tasks; ``on``: the alias of a server, or
    ``at``: its address."""
    settings = queue(processes=1, threads=2, task_modules=["schedules"], **options)
    server: dict[str, Any] = {"at": at} if on == "default" else {"on": on}
    return make_project(settings, extra=extra, files={MODULE: dedent(text)}, **server)


def slots(project: Project, key: str = "tick") -> list[int]:
    """Return the instants that were enqueued, in seconds since the epoch."""
    rows = project.query(
        "SELECT run_at FROM steady_queue_recurring_executions WHERE task_key = ? ORDER BY run_at",
        key,
    )
    return [seconds(run_at) for (run_at,) in rows]


def seconds(run_at: Any) -> int:
    """Return an instant of the database in seconds since the epoch."""
    # SQLite keeps text; only PostgreSQL tells the zone.
    instant = run_at if isinstance(run_at, datetime) else datetime.fromisoformat(run_at)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return int(instant.timestamp())


def take_over(project: Project) -> None:
    """Have the checker know of the jobs that schedulers have enqueued, each for one slot."""
    rows = project.query("SELECT job_id FROM steady_queue_recurring_executions ORDER BY run_at")
    jobs = [job_id for (job_id,) in rows]
    assert None not in jobs
    assert len(set(jobs)) == len(jobs), "a job for two slots"
    project.enqueued += jobs


def schedulers(project: Project) -> list[int]:
    """Return the pids of the registered schedulers."""
    rows = project.query("SELECT pid FROM steady_queue_processes WHERE kind = 'scheduler'")
    return [pid for (pid,) in rows if proc.alive(pid)]


def wait_scheduler(project: Project, *, other_than: int = 0) -> int:
    """Return the pid of a scheduler that is at work."""

    def found() -> int:
        return next((pid for pid in schedulers(project) if pid != other_than), 0)

    return wait_for(found, 20, "a scheduler")


def wait_slots(project: Project, count: int, key: str = "tick") -> list[int]:
    return wait_for(
        lambda: found if len(found := slots(project, key)) >= count else [],
        20 + count,
        f"{count} slots of {key!r}",
    )


def gaps(found: list[int]) -> list[int]:
    """Return the seconds between the first and the last slot that have none."""
    return sorted(set(range(found[0], found[-1])) - set(found))


def mirrored(project: Project) -> list[tuple[Any, ...]]:
    return project.query(
        "SELECT key, schedule, task_path, queue_name, priority, description "
        "FROM steady_queue_recurring_tasks WHERE static ORDER BY key"
    )
