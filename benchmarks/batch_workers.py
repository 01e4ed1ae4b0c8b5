"""How fast several workers finish members of one batch at once, beside unrelated jobs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import django
from django.db import connections

from benchmarks import testbed
from benchmarks.batch_costs import enqueue

WORKSPACE = Path(__file__).resolve().parent.parent
#: Seconds for the jobs of one turn.
PATIENCE = 120

SETTINGS = """
SECRET_KEY = "for benchmarks only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = {apps!r}
DATABASES = {{"default": {database!r}}}
TASKS = {{"default": {{"BACKEND": {backend!r}, "QUEUES": []}}}}
STEADY_QUEUE = {{
    "workers": [{{"processes": {processes}, "threads": 3}}],
    "task_modules": ["benchmarks.batch_tasks"],
    **{options!r},
}}
"""

#: How many deadlocks a server has undone, by ``connection.vendor``, and on MariaDB.
DEADLOCKS = {
    "postgresql": "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    "mysql": "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'",
    "mariadb": "SELECT variable_value FROM information_schema.global_status "
    "WHERE variable_name = 'INNODB_DEADLOCKS'",
}


class Together(NamedTuple):
    """Jobs that all workers have finished in a second: medians of the turns."""

    plain: float
    members: float
    #: The median of the ratios of neighbouring turns.
    ratio: float
    #: How many transactions the server has ended because of deadlocks.
    deadlocks: int


def measure_together(alias: str, processes: int, jobs: int, turns: int) -> Together:
    """Let workers finish ``jobs`` unrelated jobs and as many of one batch, in turns."""
    from steady_queue_core import Batch

    def plain() -> None:
        enqueue("plain", jobs, jobs)

    def members() -> None:
        with Batch():
            enqueue("members", jobs, jobs)

    rates: dict[Callable[[], None], list[float]] = {plain: [], members: []}
    with testbed.backend_on(alias), workers(alias, processes):
        before = _deadlocks(alias)
        for turn in range(1 + turns):
            # Which of them comes first alternates.
            for kind in (plain, members) if turn % 2 else (members, plain):
                rates[kind].append(rate(alias, kind, jobs))
        deadlocks = _deadlocks(alias) - before
    both = rates[plain][1:], rates[members][1:]
    ratios = [ours / theirs for theirs, ours in zip(*both, strict=True)]
    return Together(*map(statistics.median, (*both, ratios)), deadlocks)


def rate(alias: str, store: Callable[[], None], jobs: int) -> float:
    """Store jobs at once; return how many of them have finished in a second."""
    from steady_queue_core.models import Job

    found = Job.objects.using(alias)
    last = found.order_by("-pk").values_list("pk", flat=True).first() or 0
    store()
    mine = found.filter(pk__gt=last)
    deadline = time.monotonic() + PATIENCE
    while left := mine.filter(finished_at=None).count():
        if time.monotonic() > deadline:
            raise AssertionError(f"{left} of {jobs} jobs have not ended in {PATIENCE} s")
        time.sleep(0.1)
    instants = list(mine.values_list("started_at", "finished_at"))
    if len(instants) != jobs:
        raise AssertionError(f"{len(instants)} jobs instead of {jobs}")
    seconds = max(end for _, end in instants) - min(start for start, _ in instants)
    return jobs / float(seconds.total_seconds())


@contextmanager
def workers(alias: str, processes: int, **options: object) -> Iterator[None]:
    """Run a supervisor with so many workers, which are ready; ``options``: of ``STEADY_QUEUE``."""
    from steady_queue_core.models import Process

    apps = ["steady_queue_core", *(["django_tasks"] if django.VERSION < (6, 0) else [])]
    settings = SETTINGS.format(
        apps=apps, database=connections.settings[alias], backend=testbed.BACKEND,
        processes=processes, options=options,
    )  # fmt: skip
    ready = Process.objects.using(alias).filter(kind="worker").exclude(name__startswith="benchmark")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "worker_settings.py").write_text(settings)
        path = os.pathsep.join([folder, str(WORKSPACE)])
        environment = os.environ | {
            "PYTHONPATH": path,
            "DJANGO_SETTINGS_MODULE": "worker_settings",
        }
        with (
            open(Path(folder) / "log", "wb") as log,
            subprocess.Popen(
                [sys.executable, "-m", "django", "steady_queue"],
                cwd=folder, env=environment, stdout=log, stderr=log,
            ) as supervisor,
        ):  # fmt: skip
            try:
                deadline = time.monotonic() + PATIENCE
                while ready.count() < processes:
                    if supervisor.poll() is not None or time.monotonic() > deadline:
                        raise AssertionError((Path(folder) / "log").read_text())
                    time.sleep(0.1)
                yield
            finally:
                supervisor.terminate()


def _deadlocks(alias: str) -> int:
    connection: Any = connections[alias]
    kind = "mariadb" if getattr(connection, "mysql_is_mariadb", False) else connection.vendor
    if kind not in DEADLOCKS:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(DEADLOCKS[kind])
        return int(cursor.fetchone()[0])
