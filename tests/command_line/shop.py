"""The project of the examples in docs/command-line.md."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.dialects.database import Database
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.models import Job, Process, ProcessEnd, Queue, ReadyExecution
from steady_queue_core.models.process import register
from steady_queue_core.tasks import registry

from ..core.driver import Driver

TASKS = """
from steady_queue_core import limits_concurrency, task


@limits_concurrency(to=1, key=lambda address: address)
@task(queue_name="billing")
def charge(address):
    pass


@task
def add(a, b):
    return a + b


@task(queue_name="mail")
def send(address, password=""):
    raise ConnectionError("no such host")
"""


class Shop:
    """A module ``shop.tasks``, and jobs, queues, processes and a schedule with its tasks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "_registered", dict(registry._registered))
        self.tasks: Any = ModuleType("shop.tasks")
        monkeypatch.setitem(sys.modules, "shop.tasks", self.tasks)
        exec(TASKS, self.tasks.__dict__)

    def open(self) -> None:
        """Let the history of the page happen."""
        self._number_from_one()
        driver = Driver()
        self.tasks.send.enqueue("ada@example.com", password="hidden")
        driver.work()
        Process.objects.all().delete()
        for name in ("bob", "cy"):
            self.tasks.send.enqueue(f"{name}@example.com")
        self.tasks.add.enqueue(1, 2)
        self.tasks.add.using(run_after=timedelta(hours=1)).enqueue(3, b=4)
        self.tasks.charge.enqueue("bob@example.com")
        self.tasks.charge.enqueue("bob@example.com")
        self._let_time_pass()
        Queue("reports").pause()
        schedule_recurring_task(
            "nightly", self.tasks.add, schedule="0 3 * * *", args=[1, 1], timezone="UTC"
        )
        self._start()
        self._bury()

    @staticmethod
    def _let_time_pass() -> None:
        past = Job.objects.order_by("pk").first()
        assert past
        ReadyExecution.objects.update(created_at=past.enqueued_at - timedelta(seconds=42))

    @staticmethod
    def _start() -> None:
        supervisor = register(
            "default", kind="supervisor", name="supervisor-4b1c", pid=4121, hostname="web-1",
            supervisor_id=None, metadata="{}",
        )  # fmt: skip
        register(
            "default", kind="worker", name="worker-9e02", pid=4123, hostname="web-1",
            supervisor_id=supervisor.id,
            metadata=json.dumps({"queues": ["default"], "threads": 3}),
        )  # fmt: skip

    @staticmethod
    def _bury() -> None:
        """Tell of a worker that was killed while it sent a mail."""
        present = Database.of("default").storable_time()
        job = {"id": 1, "task": "shop.tasks.send", "queue": "mail"}
        details = {
            "why": "It was killed by SIGKILL.",
            "exit_code": -9,
            "queues": ["default"],
            "endings": {"retried": 1, "released": 2},
            "jobs": [{**job, "ending": "retried", "lost": True}],
        }
        ProcessEnd.objects.create(
            process_id=1, name="worker-77d0", kind="worker", pid=4122, hostname="web-1",
            supervisor_id=2, started_at=present, last_heartbeat_at=present, ended_at=present,
            reason="signal", held=3, lost=1, details=json.dumps(details),
        )  # fmt: skip

    @staticmethod
    def _number_from_one() -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("DELETE FROM sqlite_sequence")
