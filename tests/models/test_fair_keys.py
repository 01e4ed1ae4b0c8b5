"""Jobs of fair queues have their keys, however they are enqueued: on every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from steady_queue_core import (
    Batch,
    Snooze,
    Unique,
    Workflow,
    aenqueue_many,
    call,
    chain,
    enqueue_many,
    group,
    recurring,
    task,
)
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.dialects import FairKey, NewJob
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.models import Job
from steady_queue_core.processes.worker.callbacks import with_callback
from steady_queue_core.schedules import definition as schedules
from steady_queue_core.tasks import registry

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

pytestmark = on_every_database

HOUR = timedelta(hours=1)


@task(queue_name="mail", fair_key=lambda tenant, *_: tenant)
def send(tenant: str, how: str = "") -> str:
    if how == "snooze":
        raise Snooze(HOUR)
    return tenant


@task(queue_name="mail", fair_key=lambda tenant: tenant)
async def asend(tenant: str) -> str:
    return tenant


@task(queue_name="mail", unique=Unique(key="one", on_conflict="replace"), fair_key=lambda key: key)
def latest(key: str) -> None:
    """Take the place of the last one."""


@task(queue_name="mail", fair_key="told")
def told(result_id: str) -> None:
    """Follow a success."""


@task(queue_name="mail", fair_key="finished")
def finished() -> None:
    """Follow a batch."""


@task(queue_name="mail", on_success=told, fair_key="x", takes_context=True)
def leave(context: Any) -> None:
    context.enqueue(send, "left")


@pytest.fixture(autouse=True)
def _fair(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, fair_queues=["mail"], backoff=0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[NewJob]]:
    """The jobs that are made of calls."""
    found: list[NewJob] = []
    make = SteadyQueueBackend.new_job

    def new_job(self: SteadyQueueBackend, encoded: Any) -> NewJob:
        found.append(make(self, encoded))
        return found[-1]

    monkeypatch.setattr(SteadyQueueBackend, "new_job", new_job)
    yield found
    assert [job.fair_key for job in found] == [FairKey.read(job.metadata) for job in found]


def keys(using: str) -> list[str | None]:
    """Return what the rows of the jobs say, in the order of their ids."""
    rows = Job.objects.using(using).order_by("pk").values_list("metadata", flat=True)
    return [FairKey.read(metadata) for metadata in rows]


def test_single_calls(using: str, made: list[NewJob]) -> None:
    send.enqueue("a")
    send.using(run_after=HOUR).enqueue("b")
    send.using(fair_key="c").enqueue("a")
    send.using(queue_name="plain").enqueue("a")
    async_to_sync(asend.aenqueue)("d")
    assert keys(using) == ["a", "b", "c", None, "d"]
    assert [job.fair_key for job in made] == keys(using)


def test_bulks(using: str, made: list[NewJob]) -> None:
    enqueue_many([call(send, "a"), call(asend, "b"), call(finished)])
    async_to_sync(aenqueue_many)([call(send, "c")])
    assert keys(using) == ["a", "b", "finished", "c"]
    assert [job.fair_key for job in made] == keys(using)


def test_batches_and_their_callbacks(using: str, made: list[NewJob]) -> None:
    with Batch(on_finish=finished):
        send.enqueue("a")
    driver = Driver(using)
    driver.work()
    assert keys(using) == ["a", "finished"]
    assert len(made) == 2


def test_chains_groups_and_workflows(using: str, made: list[NewJob]) -> None:
    chain(call(send, "a"), call(send, "b")).enqueue()
    group(call(send, "c"), call(send, "d")).enqueue()
    workflow = Workflow()
    workflow.add(call(send, "e"))
    workflow.enqueue()
    assert sorted(key or "" for key in keys(using)) == ["a", "b", "c", "d", "e"]
    assert sorted(job.fair_key or "" for job in made) == ["a", "b", "c", "d", "e"]


def test_callbacks_and_calls_that_are_left_to_an_outcome(using: str, made: list[NewJob]) -> None:
    leave.enqueue()
    Driver(using).work()
    assert keys(using)[0] == "x"
    assert {*keys(using)[1:]} == {"left", "told"}
    assert {job.fair_key for job in made} == {"x", "left", "told"}


def test_a_callback_that_no_process_knows_has_the_empty_key(
    using: str, made: list[NewJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave.enqueue()
    driver = Driver(using)
    [claim] = driver.claim()
    done = driver._run(claim)
    known = {p: t for p, t in registry._registered.items() if p != told.module_path}
    with monkeypatch.context() as patch:
        patch.setattr(registry, "_registered", known)
        patch.setattr(registry, "_variant", lambda path: None)
        done = with_callback(done, claim)
    driver.settle(done)
    assert {*keys(using)} == {"x", "left", ""}


def test_recurring_tasks(using: str, made: list[NewJob], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_registry", {})
    recurring(key="static", schedule=HOUR, args=["a"])(send)
    [static] = schedules.registered()
    static.configured_task().enqueue("a")
    schedule_recurring_task("dynamic", send, schedule=HOUR, args=["b"]).run_now()
    assert keys(using) == ["a", "b"]


def test_a_call_that_takes_the_place_of_another(using: str, made: list[NewJob]) -> None:
    latest.using(run_after=HOUR).enqueue("a")
    latest.using(run_after=HOUR).enqueue("b")
    assert [job.fair_key for job in made] == ["a", "b"]
    assert keys(using) == ["b"]


def test_the_key_stays_with_the_job_while_its_metadata_change(using: str) -> None:
    send.enqueue("a", "snooze")
    Driver(using).work()
    [metadata] = Job.objects.using(using).values_list("metadata", flat=True)
    assert metadata is not None
    assert '"snoozes"' in metadata
    assert keys(using) == ["a"]
