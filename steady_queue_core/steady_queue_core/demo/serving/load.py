"""Load: enqueues jobs, a few a second, for as long as the demo runs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from itertools import count
from typing import Any

from ...batches.batch import Batch
from ...batches.chain import chain
from ...batches.workflow import Workflow
from ...bulk import call, enqueue_many
from ...errors import QueueFull
from ...models import BlockedExecution, Queue, ReadyExecution, ScheduledExecution
from .traffic import APP, ENQUEUED, Traffic, busyness

#: The queue that is paused, and how many jobs it has at first and in the end.
PAUSED, FIRST, MOST = "newsletter", 24, 40
#: So many jobs may be blocked, and so many of each state wait, before no more are enqueued: users
#: can pause any queue, and the disk is not ours.
MOST_BLOCKED, MOST_WAITING = 6, 1_000
#: How long reminders are delayed.
DELAY = timedelta(minutes=2)


@dataclass
class Beat:
    """Something that is enqueued now and then."""

    #: Seconds between two times.
    every: float
    enqueue: Callable[[], object]
    next: float


class Load:
    """What is enqueued, and when. The instants are seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._tasks: Any = import_module(APP)
        self._numbers = count(4711)
        others: list[tuple[float, Callable[[], object]]] = [
            (20, self._add_newsletter),
            (60, self._remind),
            (30, self._export),
            (30, self._send_order),
            (60, self._pack_many),
            (60, self._return_order),
        ]
        self._beats = [
            *(self._beat(each, now) for each in ENQUEUED),
            *(Beat(every, enqueue, now + random.uniform(0, 2)) for every, enqueue in others),
        ]
        Queue(PAUSED).pause()
        newsletter = self._tasks.send_newsletter
        enqueue_many([call(newsletter, next(self._numbers)) for _ in range(FIRST)])

    def step(self, now: float) -> None:
        """Enqueue what is due."""
        due = [each for each in self._beats if each.next <= now]
        if not due or not _has_room():
            return
        for beat in due:
            # What was missed while the computer slept is not made up for.
            beat.next = max(beat.next + beat.every / busyness(time.time() / 60), now)
            try:
                beat.enqueue()
            except QueueFull:
                continue  # Somebody has paused it.

    def _beat(self, traffic: Traffic, now: float) -> Beat:
        task = getattr(self._tasks, traffic.task)

        def enqueue() -> None:
            if traffic.queue != "imports" or _waiting(BlockedExecution, MOST_BLOCKED):
                enqueue_many([call(task, next(self._numbers)) for _ in range(traffic.at_once)])

        every = 60 * traffic.at_once / traffic.per_minute
        return Beat(every, enqueue, now + random.uniform(0, min(every, 3)))

    # --- what is more than a number of calls ---

    def _add_newsletter(self) -> None:
        if Queue(PAUSED).size < MOST:
            self._tasks.send_newsletter.enqueue(next(self._numbers))

    def _remind(self) -> None:
        self._tasks.remind_customer.using(run_after=DELAY).enqueue(next(self._numbers))

    def _export(self) -> None:
        self._tasks.export_orders.enqueue(2026)

    def _send_order(self) -> None:
        """Enqueue a workflow: two steps at once, between two others."""
        tasks, order = self._tasks, next(self._numbers)
        workflow = Workflow(f"order {order}")
        reserved = workflow.add(call(tasks.reserve, order), name="reserve")
        packed = workflow.add(call(tasks.pack, reserved.result), name="pack")
        charged = workflow.add(call(tasks.charge_card, reserved.result), name="charge")
        workflow.add(call(tasks.ship, order), name="ship", after=[packed, charged])
        workflow.add(call(tasks.send_receipt, order), name="receipt", after=[charged])
        workflow.enqueue()

    def _pack_many(self) -> None:
        """Enqueue a batch."""
        with Batch("parcels of the hour", on_finish=call(self._tasks.print_labels)):
            enqueue_many([call(self._tasks.pack, next(self._numbers)) for _ in range(12)])

    def _return_order(self) -> None:
        """Enqueue a chain."""
        tasks, order = self._tasks, next(self._numbers)
        chain(
            call(tasks.reserve, order), call(tasks.pack, order), call(tasks.ship, order)
        ).enqueue()


def _has_room() -> bool:
    return all(
        _waiting(model, MOST_WAITING)
        for model in (ReadyExecution, ScheduledExecution, BlockedExecution)
    )


def _waiting(model: Any, most: int) -> bool:
    """Whether there are fewer jobs of a state than ``most``."""
    return len(model.objects.order_by("pk").values_list("pk", flat=True)[:most]) < most
