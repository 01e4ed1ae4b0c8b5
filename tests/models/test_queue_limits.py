"""Queues that take no more jobs than they may have, on every database."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext

from steady_queue_core import (
    Batch,
    Workflow,
    aenqueue_many,
    call,
    chain,
    enqueue_many,
    group,
    task,
)
from steady_queue_core.compat import task_backends, task_enqueued
from steady_queue_core.conformance import threads
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.errors import MigrationsMissing, QueueFull
from steady_queue_core.features.queue_limits import admission
from steady_queue_core.features.queue_limits import lengths as queue_lengths
from steady_queue_core.middleware import Middleware
from steady_queue_core.models import (
    Job,
    JobBatch,
    Queue,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.scheduler.due_times import DueTimes
from steady_queue_core.processes.scheduler.recurring_schedule import RecurringSchedule

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

LIMIT = 10
HOUR = timedelta(hours=1)
PATIENCE = 120.0
FULL = "Try again later, let more workers serve it, or raise the limit."


def at_once(exception: BaseException, task_result: Any) -> float:
    """Try again without a delay."""
    return 0


@task(queue_name="mail")
def send(number: int = 0) -> int:
    """Be in a queue with a limit."""
    return number


@task
def other(number: int = 0) -> None:
    """Be in a queue without one."""


@task(queue_name="mail", max_attempts=2, backoff=at_once)
def enqueues(number: int) -> None:
    """Enqueue directly, in bulk, in a batch and in a chain."""
    send.enqueue(number)
    enqueue_many([call(send, number)] * 2)
    with Batch():
        send.enqueue(number)
    chain(call(send, number)).enqueue()


@task(queue_name="mail")
async def aenqueues() -> None:
    await send.aenqueue()


@task(queue_name="mail", takes_context=True, on_success=other)
def leaves(context: Any) -> None:
    context.enqueue(send, 7)


@task(queue_name="mail", max_attempts=2, backoff=at_once)
def fails() -> None:
    raise ValueError("always")


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, queue_limits={"mail": LIMIT})


def count(using: str, model: Any = Job, **fields: Any) -> int:
    found: int = model.objects.using(using).filter(**fields).count()
    return found


def fill(jobs: int = LIMIT) -> None:
    enqueue_many([call(send, 0)] * jobs)


@on_every_database
def test_a_full_queue_takes_no_job(using: str) -> None:
    fill()
    with pytest.raises(QueueFull) as caught:
        send.enqueue(1)
    assert str(caught.value) == (
        f"{send.module_path} was not enqueued: the queue 'mail' has at least 10 ready jobs, and "
        f"its limit in TASKS['default']['OPTIONS']['queue_limits'] is 10. {FULL}"
    )
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.queue_name, error.length, error.limit) == ("mail", 10, 10)
    assert other.enqueue(1).id
    assert (count(using), count(using, queue_name="mail")) == (LIMIT + 1, LIMIT)


@on_every_database
def test_a_bulk_is_stored_as_a_whole_or_not_at_all(using: str) -> None:
    fill(8)
    calls = [call(other), *[call(send)] * 3, call(other)]
    for enqueue in (enqueue_many, async_to_sync(aenqueue_many)):
        with pytest.raises(QueueFull) as caught:
            enqueue(calls)
        assert str(caught.value) == (
            "5 calls were not enqueued: the queue 'mail' has 8 ready jobs, 3 of them are for it, "
            f"and its limit in TASKS['default']['OPTIONS']['queue_limits'] is 10. {FULL}"
        )
    assert count(using) == 8
    assert len(enqueue_many(calls[:3])) == 3


@on_every_database
def test_a_bulk_that_is_longer_than_the_limit_is_refused_with_the_reason(using: str) -> None:
    with pytest.raises(QueueFull, match=r"has 0 ready jobs.*So many at once never fit.*parts"):
        fill(LIMIT + 1)
    assert count(using) == 0


@on_every_database
def test_only_ready_jobs_count_and_paused_ones_too(using: str) -> None:
    Queue("mail", using).pause()
    later = send.using(run_after=HOUR)
    enqueue_many([call(later)] * 20)
    assert send.using(run_after=datetime(2101, 2, 3, tzinfo=UTC)).enqueue().id
    fill()
    with pytest.raises(QueueFull):
        send.enqueue()
    assert count(using, ScheduledExecution) == 21


@on_every_database
@pytest.mark.parametrize("run_after", [HOUR, datetime(2101, 2, 3, tzinfo=UTC)])
def test_a_full_queue_takes_no_scheduled_job(using: str, run_after: Any) -> None:
    fill()
    with pytest.raises(QueueFull):
        send.using(run_after=run_after).enqueue()
    assert count(using) == LIMIT


@on_every_database
def test_what_is_overdue_counts_as_ready(using: str) -> None:
    with pytest.raises(QueueFull):
        enqueue_many([call(send.using(run_after=datetime(2001, 2, 3, tzinfo=UTC)))] * 11)
    assert count(using) == 0


@on_every_database
def test_a_queue_takes_jobs_again_once_workers_have_claimed_some(using: str) -> None:
    fill()
    with pytest.raises(QueueFull):
        send.enqueue()
    Driver(using).claim(limit=3)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            assert send.enqueue().id
            break
        except QueueFull:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert count(using, ReadyExecution) == 8


@on_every_database
def test_a_look_is_one_statement_and_good_for_the_enqueues_after_it(using: str) -> None:
    def looks(some: Any) -> int:
        with CaptureQueriesContext(connections[using]) as captured:
            some.enqueue()
        return sum("count(*)" in each["sql"].lower() for each in captured)

    assert looks(other) == 0
    assert looks(send) == 1
    look_no_more(using)
    assert looks(send) == 0


def look_no_more(using: str) -> None:
    """Go on with what is known of the only queue, however slow the machine is."""
    [length] = queue_lengths.lengths_in(using)._lengths.values()
    length.looked_at = time.monotonic() + PATIENCE


@on_every_database
def test_a_call_that_waits_for_the_commit_is_refused_before(using: str) -> None:
    patient = send.using(enqueue_on_commit=True)
    fill(9)
    with transaction.atomic(using=using):
        result = patient.enqueue()
        assert result.id == ""
        look_no_more(using)
        with pytest.raises(QueueFull):
            patient.enqueue()
        backend = task_backends["default"]
        backend.insert([backend.encode(send, [], {})] * 5)
    # It was accepted, however long the queue has become.
    assert result.id
    assert count(using) == 15


@on_every_database
def test_a_refusal_leaves_the_transaction_of_the_caller_usable(using: str) -> None:
    fill()
    with transaction.atomic(using=using):
        with pytest.raises(QueueFull):
            send.enqueue()
        other.enqueue()
    assert count(using) == LIMIT + 1


@on_every_database
def test_what_a_transaction_has_enqueued_counts_in_it(using: str) -> None:
    with transaction.atomic(using=using):
        fill()
        queue_lengths.forget()
        with pytest.raises(QueueFull):
            send.enqueue()
        transaction.set_rollback(True, using=using)
    queue_lengths.forget()
    fill()


@pytest.mark.parametrize(
    "using", [pytest.param("default", marks=pytest.mark.django_db(transaction=True))]
)
def test_on_sqlite_a_transaction_writes_before_it_counts(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has read first would fail as soon as another connection has written."""
    connection: Any = connections[using]
    monkeypatch.setattr(connection, "transaction_mode", "DEFERRED")

    with transaction.atomic(using=using):
        assert task_backends["default"].count_ready("mail", LIMIT) == 0
        writer = threads.start(using, other.enqueue)
        wait([writer], timeout=2)  # It waits for this transaction.
        send.enqueue()
    writer.result(PATIENCE)
    assert count(using) == 2


@on_every_database
def test_jobs_are_never_refused_what_they_enqueue(using: str) -> None:
    driver = Driver(using)
    for some in (call(enqueues, 1), call(aenqueues), call(leaves), call(fails)):
        enqueue_many([some])
    fill(6)
    claims = [claim for claim in driver.claim() if claim.task_path != send.module_path]
    queue_lengths.forget()
    fill()
    for claim in claims:
        driver.settle(driver.run(claim))
    # Directly 6, and 1 of the follow-up; the callback; and the one to be tried again.
    assert count(using, ReadyExecution, queue_name="mail") == LIMIT + 7 + 1
    assert count(using, ReadyExecution, queue_name="default") == 1
    assert count(using, finished_at__isnull=False) == 3


@on_every_database
def test_recurring_tasks_are_never_refused(using: str) -> None:
    fill()
    schedule_recurring_task("often", send, schedule="* * * * *")
    due_times = DueTimes(QueueDatabase(using), RecurringSchedule(using, dynamic=True))
    present = Driver(using).dialect.current_time(connections[using])
    due_times.refresh(present)
    due_times.enqueue_due(present + HOUR)
    assert count(using) == LIMIT + 1


@on_every_database
@pytest.mark.parametrize(
    "enqueue",
    [
        lambda: chain(call(other), call(send)).enqueue(),
        lambda: group(call(other), call(send)).enqueue(),
        lambda: _workflow().enqueue(),
        lambda: _batch(),
        lambda: Batch.get(_open_batch()).add([call(other), call(send)]),
    ],
    ids=["chain", "group", "workflow", "batch", "add"],
)
def test_nothing_of_a_batch_is_stored_if_a_queue_is_full(
    using: str, enqueue: Callable[[], Any]
) -> None:
    fill()
    before = count(using, JobBatch)
    with pytest.raises(QueueFull):
        enqueue()
    stored = count(using)
    assert stored == LIMIT or (stored == LIMIT + 1 and count(using, JobBatch) == before + 1)
    assert count(using, queue_name="mail") == LIMIT
    with transaction.atomic(using=using):
        with pytest.raises(QueueFull):
            enqueue()
        other.enqueue()


def _workflow() -> Workflow:
    workflow = Workflow("import")
    first = workflow.add(call(other))
    workflow.add(call(send), after=first)
    return workflow


def _batch() -> None:
    with Batch():
        other.enqueue()
        send.enqueue()


def _open_batch() -> int:
    with Batch() as batch:
        other.enqueue()
    return batch.id


@on_every_database
def test_members_that_wait_take_no_room(using: str) -> None:
    chain(*[call(send)] * 20).enqueue()
    assert count(using, ReadyExecution) == 1
    queue_lengths.forget()
    fill(9)
    with pytest.raises(QueueFull):
        group(*[call(send)] * 2).enqueue()


@on_every_database
def test_nothing_of_one_backend_is_stored_if_another_has_no_room(using: str, settings: Any) -> None:
    limited = tasks(using, queue_limits={"mail": 1})["default"]
    settings.TASKS = {**tasks(using), "limited": limited}
    calls = [call(other), *[call(send.using(backend="limited"))] * 2]
    with pytest.raises(QueueFull, match=r"^2 calls were .*TASKS\['limited'\]"):
        enqueue_many(calls)
    assert count(using) == 0
    assert len(enqueue_many(calls[:2])) == 2


@on_every_database
def test_a_refused_call_is_no_enqueued_task(using: str) -> None:
    heard: list[str] = []

    def hear(task_result: Any, **kwargs: Any) -> None:
        heard.append(task_result.id)

    task_enqueued.connect(hear)
    try:
        fill(LIMIT)
        with pytest.raises(QueueFull):
            send.enqueue()
    finally:
        task_enqueued.disconnect(hear)
    assert len(heard) == LIMIT


class Elsewhere(Middleware):
    """Enqueues into another queue what finds its own full."""

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        try:
            return proceed(calls)
        except QueueFull as full:
            for each in calls:
                if each.task.queue_name == full.queue_name:
                    each.task = each.task.using(queue_name="overflow")
            return proceed(calls)


@on_every_database
def test_middleware_sees_refusals_and_may_do_something_else(using: str, settings: Any) -> None:
    path = f"{__name__}.Elsewhere"
    settings.TASKS = tasks(using, queue_limits={"*": LIMIT}, middleware=[path])
    fill()
    assert send.enqueue().id
    assert count(using, queue_name="overflow") == 1


@on_every_database
def test_each_queue_of_a_pattern_has_the_limit(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, queue_limits={"*": 2, "free": None})
    for name in ("a", "b"):
        enqueue_many([call(send.using(queue_name=name))] * 2)
        with pytest.raises(QueueFull, match=f"the queue '{name}'"):
            send.using(queue_name=name).enqueue()
    enqueue_many([call(send.using(queue_name="free"))] * 5)
    assert count(using) == 9


@on_every_database
def test_names_that_look_like_patterns_and_sql_are_names(using: str, settings: Any) -> None:
    names = ["a%", "a_", "a'b", 'a"b', "a\\", "%s", "😀", "ä", "A%", "{limit}"]
    settings.TASKS = tasks(using, queue_limits=dict.fromkeys(names, 1))
    for name in names:
        assert send.using(queue_name=name).enqueue().id
    queue_lengths.forget()
    for name in names:
        with pytest.raises(QueueFull):
            send.using(queue_name=name).enqueue()


@on_every_database
def test_a_coroutine_looks_in_another_thread(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = type(task_backends["default"])
    look, seen = backend.count_ready, []

    def looking(self: Any, *args: Any) -> Any:
        seen.append(threading.get_ident())
        return look(self, *args)

    monkeypatch.setattr(backend, "count_ready", looking)

    async def main() -> int:
        await send.aenqueue()
        return threading.get_ident()

    # async_to_sync() would run it in the thread of the test.
    loop: list[int] = []
    worker = threading.Thread(target=lambda: loop.append(_run(main, using)))
    worker.start()
    worker.join(PATIENCE)
    assert loop
    assert seen
    assert loop[0] not in seen


def _run(main: Any, using: str) -> int:
    async def run() -> int:
        found: int = await main()
        await sync_to_async(connections.close_all)()
        return found

    return asyncio.run(run())


@on_every_database
def test_without_tables_a_look_says_so(using: str) -> None:
    table = ReadyExecution._meta.db_table
    with connections[using].schema_editor() as editor:
        editor.alter_db_table(ReadyExecution, table, "moved_away")
    try:
        with pytest.raises(MigrationsMissing, match=table):
            send.enqueue()
    finally:
        with connections[using].schema_editor() as editor:
            editor.alter_db_table(ReadyExecution, "moved_away", table)
    assert send.enqueue().id


@on_every_database
def test_in_a_broken_transaction_the_error_is_that_of_any_statement(using: str) -> None:
    with transaction.atomic(using=using):
        transaction.set_rollback(True, using=using)
        with pytest.raises(DatabaseError):
            send.enqueue()
    assert send.enqueue().id


@on_every_database
@pytest.mark.timeout(PATIENCE + 60)
def test_threads_of_one_process_pass_the_limit_by_what_is_on_its_way(
    using: str, settings: Any
) -> None:
    """What is not committed when a thread looks may not be counted; what is committed meanwhile may
    be counted twice."""
    many, limit = 12, 60
    settings.TASKS = tasks(using, queue_limits={"mail": limit})

    def enqueue() -> int:
        for stored in range(3 * limit):
            try:
                send.enqueue()
            except QueueFull:
                return stored
        raise AssertionError("The queue never becomes full.")

    stored = threads.run_all(using, [enqueue] * many, PATIENCE)
    assert limit / 2 < sum(stored) == count(using) < limit + many


@on_every_database
@pytest.mark.timeout(PATIENCE + 60)
def test_processes_pass_the_limit_by_what_they_enqueue_within_a_second(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread stands for a process here: it knows what it has seen itself."""
    limit, own = 100, threading.local()
    settings.TASKS = tasks(using, queue_limits={"mail": limit})

    def lengths_of_thread(using: str) -> queue_lengths.QueueLengths:
        if not hasattr(own, "lengths"):
            own.lengths = queue_lengths.QueueLengths()
        found: queue_lengths.QueueLengths = own.lengths
        return found

    monkeypatch.setattr(admission, "lengths_in", lengths_of_thread)

    def enqueue() -> list[tuple[float, float]]:
        times = []
        while len(times) <= limit:
            began = time.monotonic()
            try:
                send.enqueue()
            except QueueFull:
                return times
            times.append((began, time.monotonic()))
            # Nobody reaches the limit alone before the others are to be seen.
            time.sleep(0.02)
        raise AssertionError("The queue never becomes full.")

    times = [each for some in threads.run_all(using, [enqueue] * 4, PATIENCE) for each in some]
    full_at = sorted(ended for _, ended in times)[limit - 1]
    assert limit <= len(times) == count(using)
    assert max(began for began, _ in times) < full_at + 1.0
