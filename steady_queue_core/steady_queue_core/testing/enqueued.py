"""The calls that a test has enqueued."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .. import arguments
from ..backend import SteadyQueueBackend
from ..compat import AnyTask, AnyTaskResult, task_backends, task_enqueued
from ..tasks.results import task_result_of
from ..timezones import to_utc
from .stored import databases

#: How far the time of a delay may be from what a test computes.
TOLERANCE = timedelta(seconds=1)


@dataclass(frozen=True)
class EnqueuedTask:
    """A call of a task that was enqueued."""

    result: AnyTaskResult

    @property
    def task(self) -> AnyTask:
        """The task, with the options of this call."""
        return self.result.task

    @property
    def args(self) -> Sequence[Any]:
        return self.result.args

    @property
    def kwargs(self) -> Mapping[str, Any]:
        return self.result.kwargs

    @property
    def queue_name(self) -> str:
        return self.task.queue_name

    @property
    def priority(self) -> int:
        return self.task.priority

    @property
    def run_after(self) -> datetime | timedelta | None:
        delay: timedelta | None = getattr(self.task, "delay", None)
        return self.task.run_after if delay is None else delay

    def is_of(self, task: AnyTask) -> bool:
        """Whether it is a call of this task, with whatever options."""
        return self.task.module_path == task.module_path

    def has_arguments(self, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> bool:
        """Whether its arguments are stored as these are; those that are ``None`` do not count."""
        return (args is None or _stored(args, {}) == _stored(self.args, {})) and (
            kwargs is None or _stored((), kwargs) == _stored((), self.kwargs)
        )

    def is_due(self, run_after: datetime | timedelta) -> bool:
        """Whether it was to run after that."""
        given = self.run_after
        if isinstance(run_after, datetime):
            return isinstance(given, datetime) and to_utc(given) == to_utc(run_after)
        if isinstance(given, datetime) and self.result.enqueued_at is not None:
            return abs(given - self.result.enqueued_at - run_after) < TOLERANCE
        return given == run_after

    def __str__(self) -> str:
        text = f"{self.task.module_path}: args={list(self.args)!r}, kwargs={dict(self.kwargs)!r}"
        text += f", queue_name={self.queue_name!r}, priority={self.priority}"
        return text if self.run_after is None else f"{text}, run_after={self.run_after!r}"


@contextmanager
def captured_tasks() -> Iterator[list[EnqueuedTask]]:
    """Give a list that is filled with what is enqueued in the block."""
    captured: list[EnqueuedTask] = []

    def note(task_result: AnyTaskResult, **kwargs: Any) -> None:
        captured.append(EnqueuedTask(task_result))

    task_enqueued.connect(note)
    try:
        yield captured
    finally:
        task_enqueued.disconnect(note)


def enqueued_tasks() -> list[EnqueuedTask]:
    """Return what the test has enqueued through the backends of ``TASKS``, in that order, whether
    it has run or not."""
    from ..models import Job

    backends = [task_backends[alias] for alias in task_backends]
    results = [result for each in backends for result in getattr(each, "results", ())]
    if any(isinstance(each, SteadyQueueBackend) and each.stores_jobs for each in backends):
        for using in databases():
            jobs = Job.objects.using(using).select_related("claimedexecution", "failedexecution")
            results += [task_result_of(job) for job in jobs.order_by("pk")]
    return [EnqueuedTask(result) for result in results]


def _stored(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return arguments.decode_call(arguments.encode_call(args, kwargs), resolve_models=False)
