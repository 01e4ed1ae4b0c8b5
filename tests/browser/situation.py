"""A queue in which there is something of everything, with names as bad as names get."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType

from steady_queue_core import Batch, Workflow, arguments, call, group
from steady_queue_core.conformance.base import ending
from steady_queue_core.dialects import CheckpointChange, Ending
from steady_queue_core.fingerprint import fingerprint_of
from steady_queue_core.models import (
    Job,
    Process,
    Queue,
    Rate,
    RecurringExecution,
    RecurringTask,
    Semaphore,
    Share,
)
from steady_queue_core.models.semaphore import Permit
from steady_queue_core.progress import Progress
from steady_queue_core.shares import set_weight

from ..admin.places import HOUR, Scene
from ..admin.test_process_ends import ended, job
from ..app.tasks import add, noop
from ..overview.planting import Garden

#: Markup, marks that turn the direction of writing, and no place to break a line.
HOSTILE = "<b onclick=alert(1)>\u202ex\u2066'\"&"
LONG = (HOSTILE + "W" * 255)[:255]
PATH = f"shop.tasks.{'deliver_' * 40}"[:255]
VALUE_ERROR = "builtins.ValueError"
#: What tasks are given in ``TASKS``.
OPTIONS = {"fair_queues": {"mail": 1}}


class Situation(Garden, Scene):
    """What the pages show. ``known`` has the primary keys of rows with a page."""

    def __init__(self, using: str) -> None:
        super().__init__(using)
        self.known: dict[str, Any] = {}

    def plant(self) -> Situation:
        """Make all of it, and return this."""
        self._failures()
        self._jobs()
        self._batches()
        self._limits()
        self._schedules()
        self._processes()
        self._statistics()
        return self

    def fail(self, message: str, **fields: Any) -> int:
        """Let a job fail for the first time and for good."""
        [claim] = self.claimed(1, **fields)
        cause = {"exception_class": VALUE_ERROR, "message": message}
        path = fields.get("task_path", "shop.tasks.send")
        outcome = ending(
            Ending.FAILED, claim, attempts=1,
            fingerprint=fingerprint_of(VALUE_ERROR, message, path),
            errors=json.dumps([[VALUE_ERROR, f"Traceback:\n  {'x' * 300}\n{message}"]]), **cause,
        )  # fmt: skip
        assert self.dialect.settle(self.connection, [outcome])
        return claim.job_id

    def schedule(self, key: str, **fields: Any) -> RecurringTask:
        """Store a recurring task, which was added at run time."""
        present = self.present(self.using)
        known = {
            "task_path": "tests.app.tasks.noop", "schedule": "0 6 * * *", "timezone": "UTC",
            "arguments": '{"args":[],"kwargs":{}}', "backend_name": "default",
            "queue_name": "default", "created_at": present, "updated_at": present, "static": False,
        }  # fmt: skip
        made: RecurringTask = self.rows(RecurringTask).create(key=key, **known | fields)
        return made

    def _jobs(self) -> None:
        stored = json.dumps({"args": [HOSTILE, "x" * 2000], "kwargs": {"password": "hush"}})
        hostile: dict[str, Any] = {"queue_name": LONG, "task_path": PATH, "arguments": stored}
        for made in (
            self.ready(2, delay=HOUR, **hostile), self.finished(2, **hostile),
            self.blocked(2, key=LONG, **hostile), self.waiting(2, **hostile),
        ):  # fmt: skip
            assert made
        self.known["failed"] = self.fail(LONG * 3, **hostile)
        self.known["long"] = self.claimed(1, **hostile)[0].job_id
        [running] = self.claimed(1, queue_name="mail", task_path="shop.tasks.send")
        self.known["running"] = running.job_id
        told = arguments.encode({"row": 17, HOSTILE: "x" * 1000})
        change = CheckpointChange(running.job_id, running.token, told, Progress(3, 4, LONG))
        assert self.dialect.save_checkpoint(self.connection, change)
        self.known["finished"] = self.finished(1)[0]
        self.rows(Job).filter(pk=self.known["finished"]).update(return_value='"y"')
        self.known["blocked"] = self.blocked(1, key="account:7")[0]
        self.known["scheduled"] = self.ready(1, delay=HOUR)[0]
        self.known["ready"] = self.ready(8, "mail")[0]
        self.ready(2, **hostile)
        self.ready(1, "frozen")
        for name in ("frozen", LONG):
            assert Queue(name, self.using).pause()
        self.known["queue"], self.known["long queue"] = "mail", LONG

    def _failures(self) -> None:
        for number in range(3):
            self.fail(f"no order {number}", queue_name="mail", task_path="shop.tasks.send")
        self.fail("no customer", queue_name="mail", task_path="shop.tasks.bill")

    def _statistics(self) -> None:
        for ago in range(60):
            self.count(ago, finished=90 + ago, failed=ago % 3, retried=1, enqueued=90)
            self.count(ago, LONG, PATH, finished=5, failed=1, enqueued=5)
            self.sample(ago, ready=ago, wait=100 * ago)
            self.sample(ago, "mail", ready=ago, wait=100 * ago)

    def _batches(self) -> None:
        with Batch(LONG, metadata={HOSTILE: LONG, "shop": 7}, on_finish=noop) as batch:
            for number in range(3):
                add.enqueue(number, 1)
        steps = Workflow("nightly")
        first = steps.add(call(noop), name=LONG)
        second = steps.add(call(noop), name="load", after=[first])
        steps.add(group(call(noop)), name="report", after=[second], run_when="finished")
        self.known["batch"], self.known["workflow"] = batch.id, steps.enqueue().id
        with Batch("empty") as empty:
            noop.enqueue()
        empty.cancel()
        self.known["cancelled batch"] = empty.id

    def _limits(self) -> None:
        micro = 1_700_000_000_000_000
        for name, key in {"rate": "api", "long rate": LONG}.items():
            self.rows(Rate).create(
                key=key, gate=micro, line=micro, shift=0, limit=10, period=60_000_000, burst=5
            )
            self.known[name] = key
        for name, key in {"semaphore": "account:7", "long semaphore": LONG}.items():
            self.rows(Semaphore).create(key=key, value=0, limit=1)
            self.known[name] = key
        self.rows(Permit).create(job_id=self.known["running"], key="account:7")
        for key in ("tenant-1", LONG):
            set_weight("mail", key, 5, using=self.using)
            self.known["share" if key != LONG else "long share"] = self.rows(Share).get(key=key).pk

    def _schedules(self) -> None:
        present = self.present(self.using)
        self.known["schedule"] = self.schedule("daily", description="Reports", static=True).key
        self.known["long schedule"] = self.schedule(
            LONG, task_path=PATH, schedule=LONG, description=LONG * 4, timezone=LONG[:64],
            queue_name=LONG, repeats=7,
        ).key  # fmt: skip
        self.known["dynamic schedule"] = self.schedule("tenant-1", enabled=False).key
        for key in ("daily", LONG):
            self.rows(RecurringExecution).create(
                task_key=key, run_at=present, job_id=self.known["finished"], created_at=present
            )

    def _processes(self) -> None:
        told = {"queues": [LONG, "mail"], "threads": 3, HOSTILE: LONG}
        process = self.start("worker", LONG[:64], **told)
        self.rows(Process).filter(pk=process.id).update(hostname=LONG)
        self.known["process"], self.known["long process"] = self.worker.id, process.id
        self.age(self.processes.filter(pk=process.id), last_heartbeat_at=HOUR)
        held = [job(self.known["failed"]), job(9999)]
        for name, jobs in {"worker-2": held, LONG: ()}.items():
            end = ended(self.using, process.id, jobs, name=name, hostname=LONG)
            self.known["end" if jobs else "long end"] = end.pk


def history_of(user: Any, model: Any, key: Any) -> LogEntry:
    """Have a user done something to a row."""
    entry: LogEntry = LogEntry.objects.create(
        user=user, content_type=ContentType.objects.get_for_model(model), object_id=str(key),
        object_repr=LONG[:200], action_flag=CHANGE, change_message=f"Retried {LONG}",
    )  # fmt: skip
    return entry
