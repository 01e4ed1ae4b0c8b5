"""What is stored at once is stored again after a deadlock, and is there once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, OperationalError, connections, transaction

from steady_queue_core import Batch, Workflow, call, chain, group, limits_concurrency, task
from steady_queue_core.batches import batch as batch_module
from steady_queue_core.batches import enqueue
from steady_queue_core.batches.store import GraphStore
from steady_queue_core.compat import task_enqueued
from steady_queue_core.conformance import threads
from steady_queue_core.dialects import contention
from steady_queue_core.dialects.database import Database
from steady_queue_core.dialects.joins import Joins
from steady_queue_core.middleware import Middleware, install, uninstall
from steady_queue_core.models import BatchMember, Job, JobBatch, WaitingExecution
from steady_queue_core.models.operations import batches as retrying
from steady_queue_core.models.semaphore import Semaphore

from ..core.driver import Driver
from ..waiters import waiters
from .deadlocks import DEADLOCK, Attempts, attempts, deadlock_after
from .everywhere import on_every_database, on_every_server
from .recurrence import tasks

__all__ = ["attempts"]  # A fixture.
PATIENCE = 20


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@task(max_attempts=1)
def work(value: int = 0, *, fails: bool = False) -> int:
    if fails:
        raise LookupError
    return value


@limits_concurrency(key=lambda key: key, to=5)
@task
def limited(key: str) -> None:
    """Do nothing."""


@limits_concurrency(key="one", to=1, on_conflict="discard")
@task
def hurried() -> None:
    """Do nothing."""


class Rival:
    """Locks the last of two semaphores, and the first one once somebody waits for the last. The
    server then ends the transaction of whoever has waited longer, or has changed less."""

    def __init__(self, using: str) -> None:
        self.using, self.has_locked = using, threading.Event()
        for each in both():
            each.task.enqueue(*each.args).cancel()
        found = Semaphore.objects.using(using).order_by("key")
        self.first, self.last = found.values_list("key", flat=True)

    def work(self) -> None:
        with transaction.atomic(using=self.using):
            self._let_the_other_lose()
            many = [Semaphore(key=f"{number}", value=1, limit=1) for number in range(100)]
            Semaphore.objects.using(self.using).bulk_create(many)
            self._lock(self.last)
            self.has_locked.set()
            self._wait_for_a_waiter()
            self._lock(self.first)

    def _let_the_other_lose(self) -> None:
        """PostgreSQL ends whoever looks first once both wait, each of which looks once."""
        connection = connections[self.using]
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL deadlock_timeout = '1min'")

    def _lock(self, key: str) -> None:
        found = Semaphore.objects.using(self.using).filter(pk=key)
        assert list(Database.of(self.using).lock_rows(found, wait=True))

    def _wait_for_a_waiter(self) -> None:
        until = time.monotonic() + PATIENCE
        while not waiters(connections[self.using]):
            assert time.monotonic() < until, "nobody waits"
            time.sleep(0.01)


@contextmanager
def slow_to_look(connection: Any) -> Iterator[None]:
    """Have PostgreSQL look for a deadlock only when the rival waits, on a busy machine, too."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET deadlock_timeout = '4s'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET deadlock_timeout")


@contextmanager
def rival_of(using: str) -> Iterator[None]:
    """Meet a rival in the block."""
    rival = Rival(using)
    working = threads.start(using, rival.work)
    assert rival.has_locked.wait(PATIENCE)
    with slow_to_look(connections[using]):
        yield
    working.result(timeout=PATIENCE)


def both() -> list[Any]:
    return [call(limited, "a"), call(limited, "b")]


def count(using: str, kind: Any) -> int:
    return int(kind.objects.using(using).count())


def unfinished(using: str) -> int:
    return int(Job.objects.using(using).filter(finished_at=None).count())


@on_every_server
@pytest.mark.parametrize(
    "store", [lambda: group(*both()).enqueue(), lambda: Batch().add(both())], ids=["group", "add"]
)
def test_who_loses_a_deadlock_stores_everything_once(using: str, store: Callable[[], Any]) -> None:
    seen = Attempts(using)
    with rival_of(using), seen.counted():
        store()
    assert seen.deadlocks == 1
    assert (unfinished(using), count(using, JobBatch)) == (2, 1)
    assert len(Driver(using).claim()) == 2


@on_every_server
def test_in_a_transaction_of_the_caller_a_deadlock_is_raised_and_nothing_is_stored(
    using: str,
) -> None:
    seen = Attempts(using)
    with (
        rival_of(using),
        seen.counted(),
        pytest.raises(DatabaseError),
        transaction.atomic(using=using),
    ):
        group(*both()).enqueue()
    assert seen.deadlocks == 0
    assert (unfinished(using), count(using, JobBatch)) == (0, 0)


class Heard(Middleware):
    """What code of the project is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.enqueued: list[str] = []

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        self.calls += [each.task.name for each in calls]
        return proceed([each.carrying({"number": str(len(self.calls))}) for each in calls])

    def receive(self, task_result: Any, **_: Any) -> None:
        self.enqueued.append(task_result.id)


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    install(heard)
    task_enqueued.connect(heard.receive)
    yield heard
    task_enqueued.disconnect(heard.receive)
    uninstall(heard)


#: Where the first try ends: with more and more of the graph stored.
POINTS = [
    (enqueue, "create"),
    (GraphStore, "_insert_batches"),
    (GraphStore, "_insert_members"),
    (GraphStore, "_insert_waits"),
    (enqueue, "start"),
]


@on_every_database
@pytest.mark.parametrize(("owner", "name"), POINTS, ids=[name for _, name in POINTS])
@pytest.mark.usefixtures("attempts")
def test_a_workflow_is_stored_once_and_told_once(
    using: str, heard: Heard, owner: Any, name: str
) -> None:
    workflow = Workflow()
    first = workflow.add(call(work, 1), name="first")
    workflow.add(chain(call(work, 2), group(call(work, 3), call(work, 4))), after=first)
    with deadlock_after(owner, name):
        result = workflow.enqueue()
    jobs = sorted(str(pk) for pk in Job.objects.using(using).values_list("pk", flat=True))
    assert (len(jobs), count(using, JobBatch), count(using, BatchMember)) == (4, 3, 6)
    assert (heard.calls, sorted(heard.enqueued)) == (["work"] * 4, jobs)
    driver = Driver(using)
    driver.work()
    result.refresh()
    assert (result.status, count(using, WaitingExecution)) == ("succeeded", 0)


@on_every_database
@pytest.mark.usefixtures("attempts")
def test_what_found_no_permit_at_first_is_stored_if_it_finds_one_then(using: str) -> None:
    holder = hurried.enqueue()

    def end(*_: Any) -> None:
        holder.cancel()

    workflow = Workflow()
    workflow.add(call(work, 1), after=workflow.add(call(hurried)))
    insert = GraphStore._insert_waits

    def refused(graph_store: GraphStore) -> None:
        insert(graph_store)
        states = [member.state.name for _, member in graph_store.graph.walk()]
        seen.append(states)
        if len(seen) == 1:
            raise OperationalError(DEADLOCK)

    seen: list[list[str]] = []
    pause = contention.random.uniform
    with (
        mock.patch.object(GraphStore, "_insert_waits", refused),
        mock.patch.object(contention.random, "uniform", lambda *given: end() or pause(*given)),
    ):
        result = workflow.enqueue()
    assert seen == [["DISCARDED", "PENDING"], ["PENDING", "PENDING"]]
    Driver(using).work()
    result.refresh()
    assert result.status == "succeeded"


@on_every_database
def test_the_error_reaches_the_caller_who_has_a_transaction(using: str, attempts: Attempts) -> None:
    with (
        pytest.raises(OperationalError, match=DEADLOCK),
        transaction.atomic(using=using),
        deadlock_after(enqueue, "start"),
    ):
        group(call(work)).enqueue()
    assert (attempts.deadlocks, count(using, Job)) == (0, 0)


@on_every_database
@pytest.mark.usefixtures("attempts")
@pytest.mark.parametrize("name", ["create", "start"])
def test_calls_of_an_iterator_are_added_to_a_batch_once(using: str, name: str) -> None:
    batch = Batch()
    with deadlock_after(batch_module, name):
        results = batch.add(call(work, number) for number in range(3))
    assert (count(using, Job), count(using, JobBatch), batch.total) == (3, 1, 3)
    assert [result.args for result in results] == [[0], [1], [2]]
    with deadlock_after(Joins, "lock_open"):
        batch.add([call(work, 3)])
    assert (count(using, Job), batch.total, batch.status) == (4, 4, "running")


@on_every_database
@pytest.mark.usefixtures("attempts")
def test_a_block_is_entered_and_left_after_a_deadlock(using: str) -> None:
    with deadlock_after(batch_module, "create"), Batch() as batch:
        work.enqueue()
    assert (batch.total, count(using, JobBatch)) == (1, 1)
    with deadlock_after(Joins, "lock_open"), batch:
        work.enqueue()
    assert (batch.total, count(using, Job)) == (2, 2)


@on_every_database
@pytest.mark.usefixtures("attempts")
def test_a_block_of_coroutines_is_entered_and_left_after_a_deadlock(using: str) -> None:
    async def store() -> Batch:
        with deadlock_after(JobBatch, "save"), deadlock_after(Database, "end_if_done"):
            async with Batch() as batch:
                await work.aenqueue()
        return batch

    batch = async_to_sync(store)()
    assert (batch.total, batch.status, count(using, JobBatch)) == (1, "running", 1)


@on_every_database
def test_what_follows_the_commit_repeats_nothing(using: str, attempts: Attempts) -> None:
    """The project's own hook meets a deadlock: the jobs are there."""

    def fail() -> None:
        raise OperationalError(DEADLOCK)

    def receive(**_: Any) -> None:
        transaction.on_commit(fail, using=using)

    task_enqueued.connect(receive)
    batch = Batch()
    try:
        with pytest.raises(OperationalError, match=DEADLOCK):
            batch.add([call(work)])
    finally:
        task_enqueued.disconnect(receive)
    assert (attempts.deadlocks, count(using, Job)) == (0, 1)
    batch.add([call(work)])
    assert (batch.total, count(using, JobBatch)) == (2, 1)


@on_every_database
def test_calls_that_run_at_once_are_not_run_again(
    using: str, settings: Any, attempts: Attempts
) -> None:
    immediate = {"BACKEND": "steady_queue_core.testing.ImmediateBackend", "QUEUES": []}
    settings.TASKS = tasks(using) | {"now": immediate}
    calls = [call(work), call(work.using(backend="now"))]
    with pytest.raises(OperationalError), deadlock_after(batch_module, "start"):
        Batch().add(calls)
    assert (attempts.deadlocks, count(using, Job)) == (0, 0)


@on_every_database
@pytest.mark.usefixtures("attempts")
@pytest.mark.parametrize(
    ("owner", "name"),
    [(Database, "lock_rows"), (Database, "end_members"), (Database, "end_if_done")],
    ids=["closed", "members", "ended"],
)
def test_a_batch_is_cancelled_with_all_in_it(using: str, owner: Any, name: str) -> None:
    result = group(call(work, 1), group(call(work, 2))).enqueue()
    with deadlock_after(owner, name):
        assert result.cancel()
    assert (result.status, result.pending) == ("cancelled", 0)
    unfinished = JobBatch.objects.using(using).filter(finished_at=None)
    assert not unfinished.exists()


@on_every_database
@pytest.mark.usefixtures("attempts")
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (retrying, "_go_on"),
        (retrying, "_wait_again"),
        (Joins, "reopen"),
        (Joins, "resolve"),
        (retrying, "_end_if_done"),
    ],
    ids=["opened", "waiting", "ready", "resolved", "ended"],
)
def test_a_batch_is_retried_as_a_whole(using: str, owner: Any, name: str) -> None:
    result = chain(call(work, 1, fails=True), call(work, 2)).enqueue()
    driver = Driver(using)
    driver.work()
    result.refresh()
    assert result.status == "failed"
    with deadlock_after(owner, name):
        assert result.retry() == 2
    assert (result.status, result.pending) == ("running", 2)
    driver.work()
    result.refresh()
    assert (result.status, result.pending) == ("failed", 0)
