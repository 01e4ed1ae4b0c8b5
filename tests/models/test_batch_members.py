"""Which calls become members of which batch, and what callbacks keep of their calls."""

from __future__ import annotations

from typing import Any

import django
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections

from steady_queue_core import AlreadyFinished, Batch, Fail, call, chain, enqueue_many, task
from steady_queue_core.compat import InvalidTask, task_enqueued
from steady_queue_core.conformance import threads
from steady_queue_core.errors import MigrationsMissing
from steady_queue_core.models import BatchMember, Job, JobBatch

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

DUMMY = (
    f"{'django.tasks' if django.VERSION >= (6, 0) else 'django_tasks'}.backends.dummy.DummyBackend"
)

PATIENCE = 60

told: list[Any] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    told.clear()


@task(max_attempts=2)
def work(number: int = 0, how: str = "") -> int:
    if how == "again" and told.count(number) < 1:
        told.append(number)
        raise LookupError
    if how == "fail":
        raise Fail("no stock")
    return number


@task(takes_context=True)
def tell(context: Any, *words: Any, mood: str = "") -> None:
    batch = context.batch
    told.append((*words, mood, batch.id, batch.description, batch.metadata))


def members(using: str, batch: Batch) -> list[int]:
    """Return the arguments of the jobs of a batch, which are numbers."""
    rows = BatchMember.objects.using(using).filter(batch_id=batch.id).order_by("pk")
    ids = list(rows.values_list("job_id", flat=True))
    return [batch.backend.get_result(str(pk)).args[0] for pk in ids]


@on_every_database
def test_calls_belong_to_the_batch_in_whose_block_they_are_enqueued(using: str) -> None:
    before = call(work, 1)
    with Batch() as batch:
        within, unused = call(work, 2), call(work, 3)
        enqueue_many([before, within])
    outside = enqueue_many([unused])
    assert members(using, batch) == [1, 2]
    assert Job.objects.using(using).count() == 3
    assert not BatchMember.objects.using(using).filter(job_id=int(outside[0].id)).exists()


@on_every_database
def test_a_call_that_is_used_again_belongs_to_the_batch_of_that_time(using: str) -> None:
    again = call(work, 7)
    named = work.using(queue_name="other")
    with Batch() as first:
        enqueue_many([again])
        named.enqueue(1)
    with Batch() as second:
        enqueue_many([again])
        named.enqueue(2)
    named.enqueue(3)
    assert (members(using, first), members(using, second)) == ([7, 1], [7, 2])


@on_every_database
def test_blocks_in_a_block_end_with_it(using: str) -> None:
    with Batch() as outer:
        work.enqueue(1)
        with Batch() as inner:
            work.enqueue(2)
        with Batch.get(inner.id):
            work.enqueue(3)
        work.enqueue(4)
    rows = BatchMember.objects.using(using).filter(batch_id=outer.id)
    assert rows.filter(job=None).count() == 1
    assert members(using, inner) == [2, 3]
    outer.refresh()
    assert outer.total == 3


@on_every_database
def test_what_other_threads_enqueue_meanwhile_belongs_to_nothing(using: str) -> None:
    def enqueue_elsewhere() -> None:
        threads.run_all(using, [lambda: work.enqueue(2)], PATIENCE)

    async def enqueue() -> Batch:
        async with Batch() as batch:
            await work.aenqueue(1)
            await sync_to_async(enqueue_elsewhere)()
        return batch

    batch = async_to_sync(enqueue)()
    assert members(using, batch) == [1]
    assert Job.objects.using(using).count() == 2


@on_every_database
def test_callbacks_keep_the_arguments_queue_and_priority_of_their_calls(using: str) -> None:
    last = call(tell.using(queue_name="mail", priority=7), "all", 2, mood="glad")
    with Batch("import", metadata={"shop": 3}, on_finish=last) as batch:
        work.enqueue(1)
    driver = Driver(using)
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    [job] = Job.objects.using(using).filter(task_path=tell.module_path)
    assert (job.queue_name, job.priority) == ("mail", 7)
    driver.work()
    assert told == [("all", 2, "glad", batch.id, "import", {"shop": 3})]


@on_every_database
def test_a_callback_of_another_database_is_refused(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using) | {"elsewhere": {"BACKEND": DUMMY}}
    with pytest.raises(InvalidTask, match="does not store its jobs in the database of 'default'"):
        Batch(on_success=work.using(backend="elsewhere"))


@on_every_database
def test_callbacks_are_inserted_with_the_end_and_announced_to_nobody(using: str) -> None:
    announced: list[str] = []

    def hear(task_result: Any, **_: Any) -> None:
        announced.append(task_result.task.module_path)

    task_enqueued.connect(hear)
    try:
        with Batch(on_finish=call(tell, "end")):
            work.enqueue(1)
        Driver(using).work()
    finally:
        task_enqueued.disconnect(hear)
    assert announced == [work.module_path]
    assert len(told) == 1


@on_every_database
def test_attempts_are_counted_once_each_job(using: str) -> None:
    with Batch() as batch:
        enqueue_many([call(work, 1, "again"), call(work, 2), call(work, 3, "fail")])
    driver = Driver(using)
    seen = []
    while claimed := driver.claim(limit=1):
        driver.settle(driver.run(claimed[0]))
        batch.refresh()
        seen.append((batch.pending, batch.completed, batch.failed, batch.total))
    # The first one was tried twice.
    assert seen == [(3, 0, 0, 3), (2, 1, 0, 3), (1, 2, 0, 3), (0, 2, 1, 3)]
    assert (batch.progress.done, batch.progress.fraction) == (3, 1.0)


@on_every_database
def test_unknown_arguments_of_a_batch_are_refused(using: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'shop'"):
        Batch("import", shop=3)  # type: ignore[call-arg]


@on_every_database
def test_without_their_tables_batches_are_refused_and_other_jobs_are_not(using: str) -> None:
    table = JobBatch._meta.db_table
    with connections[using].schema_editor() as editor:
        editor.alter_db_table(JobBatch, table, "moved_away")
    try:
        with pytest.raises(MigrationsMissing, match=f"lacks the tables of .*{table}.*migrate"):
            Batch().__enter__()
        with pytest.raises(MigrationsMissing):
            async_to_sync(Batch().__aenter__)()
        with pytest.raises(MigrationsMissing):
            chain(call(work, 1)).enqueue()
        work.enqueue(1)
        Driver(using).work()
    finally:
        with connections[using].schema_editor() as editor:
            editor.alter_db_table(JobBatch, "moved_away", table)
    assert not Job.objects.using(using).filter(finished_at=None).exists()


@on_every_database
@pytest.mark.parametrize("makes", ["a batch", "a chain"])
def test_a_batch_that_takes_no_more_takes_no_batches(using: str, makes: str) -> None:
    def make() -> None:
        if makes == "a chain":
            chain(call(work, 1)).enqueue()
        else:
            Batch().__enter__()

    async def block() -> None:
        async with Batch() as batch:
            await batch.acancel()
            with pytest.raises(AlreadyFinished, match="Nothing was stored: batch"):
                await sync_to_async(make)()

    async_to_sync(block)()
    [only] = JobBatch.objects.using(using).all()
    assert only.finished_at is not None
    assert not BatchMember.objects.using(using).exists()
    assert not Job.objects.using(using).exists()
