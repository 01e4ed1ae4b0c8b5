"""The tasks that the demo enqueues, with their expected outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from typing import Any

from django.db import transaction

from ..batches.batch import Batch
from ..batches.results import BatchResult
from ..batches.workflow import Workflow
from ..bulk import call
from ..compat import TaskResultStatus, task_backends

#: How long the delayed tasks wait, and how late they may be: the dispatcher looks once a second.
DELAY, LATEST = timedelta(seconds=2), timedelta(seconds=2)
#: The pause of ``tasks.flaky`` between two attempts.
BACKOFF = 0.5
#: The interval of ``tasks.tick``, and how often it is to run before the demo ends.
TICK, TICKS = timedelta(seconds=2), 2
#: How many jobs the batch has, and what the workflow starts with.
PACKED, WEIGHED = 5, 3


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A task that was enqueued."""

    name: str
    number: int
    result_id: str
    #: How often it is to run.
    runs: int = 1
    succeeds: bool = True
    #: Whether it is cancelled while it runs.
    is_cancelled: bool = False

    def __str__(self) -> str:
        return f"{self.name} #{self.result_id}"

    @property
    def job_id(self) -> int:
        return int(self.result_id)


@dataclass(frozen=True, kw_only=True)
class Together:
    """What was enqueued as a whole: a batch with a callback, and a workflow with a branch."""

    batch: Batch
    workflow: BatchResult

    def has_ended(self) -> bool:
        """Whether both have ended."""
        for each in (self.batch, self.workflow):
            each.refresh()
        return self.batch.is_finished and self.workflow.is_finished


def enqueue_together() -> Together:
    """Enqueue a batch and a workflow, as any code of the project would."""
    tasks = import_module("demo.tasks")
    with Batch("pack the orders", on_success=call(tasks.ship)) as batch:
        for number in range(1, PACKED + 1):
            tasks.pack.enqueue(number)
    workflow = Workflow("charge for an order")
    weighed = workflow.add(call(tasks.weigh, WEIGHED), name="weigh")
    charged = workflow.add(call(tasks.charge, weighed.result), name="charge")
    workflow.add(call(tasks.thank), name="thank", after=[charged])
    workflow.add(call(tasks.dun), name="dun", after=[charged], run_when="failure")
    return Together(batch=batch, workflow=workflow.enqueue())


def enqueue() -> list[Planned]:
    """Enqueue the tasks of the demo, as any code of the project would."""
    tasks = import_module("demo.tasks")
    later = tasks.remind.using(run_after=DELAY)
    calls = [
        *(("remind", later, number, 1, True) for number in range(1, 6)),
        *(("greet", tasks.greet, number, 1, True) for number in range(1, 11)),
        *(("report", tasks.report, number, 1, True) for number in range(1, 6)),
        *(("flaky", tasks.flaky, number, 3, True) for number in range(1, 4)),
        ("convert", tasks.convert, 10, 2, True),
        ("broken", tasks.broken, 1, 2, False),
        ("stall", tasks.stall, 1, 1, False),
    ]
    planned = [_enqueue(*call) for call in calls]
    watching = _enqueue("watch", tasks.watch, 1, 1, False)
    planned.append(replace(watching, is_cancelled=True))
    with transaction.atomic():  # They become visible at once.
        planned += [_enqueue("fetch", tasks.fetch, number, 1, True) for number in range(1, 11)]
    return planned


def _enqueue(name: str, task: Any, number: int, runs: int, succeeds: bool) -> Planned:
    result = task.enqueue(number)
    return Planned(name=name, number=number, result_id=result.id, runs=runs, succeeds=succeeds)


def cancel_what_runs(planned: list[Planned]) -> None:
    """Cancel the tasks that are to be cancelled while they run, once they do."""
    for each in planned:
        if each.is_cancelled:
            result: Any = task_backends["default"].get_result(each.result_id)
            if result.status == TaskResultStatus.RUNNING:
                result.cancel()
