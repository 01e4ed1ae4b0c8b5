"""Checkpoints, progress and claims as tasks see them: on every database, by the parts that a
worker and a supervisor are made of."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError, connections
from django.db.models import F
from django.db.transaction import atomic, set_rollback

from steady_queue_core import Discard, Preempted, Retry, Snooze, task
from steady_queue_core.arguments import DeserializationError, TaskArgumentError
from steady_queue_core.conformance.threads import holding
from steady_queue_core.dialects import CheckpointChange, Dialect, Ending
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.errors import CheckpointRefusedError, ProcessExitError
from steady_queue_core.models import (
    Checkpoint,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
)
from steady_queue_core.models.operations.clear import (
    FailedJobs,
    FinishedJobs,
    RetainedJobs,
    StrayCheckpoints,
)
from steady_queue_core.payloads import PayloadSignatureError, UnsignedPayloadError
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable
from steady_queue_core.processes.base.journal_reader import FinishedEntry, JournalSnapshot
from steady_queue_core.processes.dispatcher.retention import expired
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.progress import LONGEST_TEXT, Progress
from steady_queue_core.retries import constant
from steady_queue_core.tasks import notes

from ..core.driver import Driver
from .everywhere import on_every_database, on_every_server
from .recurrence import tasks

HOUR = timedelta(hours=1)
VALUE = {"row": 17, "at": HOUR, "names": ("Åsa", "\\", "'x' %s")}

#: What a test lets the task do in each attempt.
script: list[Any] = []
#: What the attempts have found.
found: list[Any] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    script.clear()
    found.clear()


@task(takes_context=True, max_attempts=5, backoff=constant(0))
def work(context: Any) -> None:
    found.append(context.checkpointed)
    script.pop(0)(context)


@task(takes_context=True)
def work_once(context: Any) -> None:
    work.func(context)


@task(takes_context=True, max_attempts=5, backoff=constant(0))
async def work_in_a_coroutine(context: Any) -> None:
    found.append(context.checkpointed)
    await script.pop(0)(context)


@task(takes_context=True, delivery="transactional", max_attempts=2)
def work_in_a_transaction(context: Any) -> None:
    script.pop(0)(context)


@task
def plain() -> None:
    """Do nothing."""


def fail_after(*values: Any) -> Any:
    def run(context: Any) -> None:
        for value in values:
            context.checkpoint(value)
        raise LookupError

    return run


def nothing(context: Any) -> None:
    """Do nothing."""


@contextmanager
def statements(using: str) -> Iterator[list[str]]:
    """Collect the statements that this thread executes."""
    executed: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        executed.append(sql)
        return execute(sql, *rest)

    with connections[using].execute_wrapper(note):
        yield executed


def rows(using: str) -> list[dict[str, Any]]:
    return list(Checkpoint.objects.using(using).order_by("pk").values())


def row(using: str) -> Any:
    return Checkpoint.objects.using(using).get()


@on_every_database
def test_the_next_attempt_finds_the_last_checkpoint(using: str) -> None:
    script[:] = [fail_after(1, VALUE), nothing]
    result = work.enqueue()
    Driver(using).finish(result)
    assert found == [None, VALUE]
    assert result.attempts == 2
    assert result.progress is None
    assert rows(using) == []  # It is of no use any more.


@on_every_database
def test_a_coroutine_finds_the_last_checkpoint(using: str) -> None:
    async def fail(context: Any) -> None:
        await context.acheckpoint(VALUE)
        found.append(context.checkpointed)
        assert await context.ais_held()
        raise LookupError

    async def succeed(context: Any) -> None:
        await context.aprogress(1, 2, "half")
        for name, arguments in {"checkpoint": [1], "progress": [1], "is_held": []}.items():
            with pytest.raises(SynchronousOnlyOperation, match=f"await context.a{name}"):
                getattr(context, name)(*arguments)

    script[:] = [fail, succeed]
    result = Driver(using).finish(work_in_a_coroutine.enqueue())
    assert found == [None, VALUE, VALUE]
    assert str(result.progress) == "1 of 2 (50%): half"


@on_every_database
@pytest.mark.parametrize("ending", [Snooze(0.001), Retry(0.001)])
def test_a_checkpoint_outlasts_an_ending_that_the_task_has_chosen(
    using: str, ending: Exception
) -> None:
    def end(context: Any) -> None:
        context.checkpoint(VALUE)
        raise ending

    script[:] = [end, end, nothing]
    driver = Driver(using)
    work.enqueue()
    while script:
        driver.dispatch()
        driver.work()
    assert found == [None, VALUE, VALUE]


@on_every_database
def test_a_job_that_has_failed_for_good_resumes_when_it_is_retried(using: str) -> None:
    script[:] = [fail_after(VALUE), nothing]
    result = work_once.enqueue()
    driver = Driver(using)
    driver.work()
    assert row(using).data is not None
    assert Job.objects.using(using).retry_failed() == 1
    driver.finish(result)
    assert found == [None, VALUE]
    assert rows(using) == []


@on_every_database
def test_a_checkpoint_may_be_replaced_and_reset(using: str) -> None:
    def replace(context: Any) -> None:
        data = {"row": 1}
        context.checkpoint(data)
        data["row"] = 2
        assert context.checkpointed == {"row": 1}
        context.checkpoint(None)
        assert context.checkpointed is None
        raise LookupError

    script[:] = [replace, nothing]
    Driver(using).finish(work.enqueue())
    assert found == [None, None]


@on_every_database
def test_the_row_says_who_has_written_it_and_when(using: str) -> None:
    driver, dialect = Driver(using), dialect_for(using)
    script[:] = [fail_after(VALUE)]
    work.enqueue()
    [claim] = driver.claim()
    before = dialect.current_time(connections[using])
    with statements(using) as executed:
        done = driver.run(claim)
    assert executed
    stored = row(using)
    assert (stored.job_id, stored.token) == (claim.job_id, claim.token)
    assert stored.progress is None
    assert before <= stored.updated_at <= dialect.current_time(connections[using])
    driver.settle(done)


@on_every_database
def test_whoever_has_lost_the_claim_stores_nothing(using: str) -> None:
    """Neither a checkpoint nor progress, nor the last progress with the outcome; it is told so."""
    driver = Driver(using)

    def lose(context: Any) -> None:
        context.checkpoint("first")
        context.progress(1, 2)
        assert context.is_held()
        give_to_another(using)
        before = rows(using)
        assert not context.is_held()
        for attempt_to in (context.checkpoint, context.progress, context.checkpoint):
            with pytest.raises(Preempted, match="has lost its claim of job"):
                attempt_to(3)
        assert not context.is_held()
        assert rows(using) == before
        context.checkpoint(4)

    script[:] = [lose]
    work.enqueue()
    [claim] = driver.claim()
    done = driver.run(claim)
    assert done.outcome.ending is Ending.RELEASED
    before = rows(using)
    assert dialect_for(using).settle(connections[using], [done.outcome]) == set()
    assert rows(using) == before
    assert row(using).progress.done == 1


@on_every_database
def test_the_last_progress_of_a_lost_claim_is_not_stored(using: str) -> None:
    driver = Driver(using)

    def tell(context: Any) -> None:
        context.progress(1)
        context.progress(2)  # Too soon after the first.
        give_to_another(using)

    script[:] = [tell]
    work.enqueue()
    [claim] = driver.claim()
    done = driver.run(claim)
    assert dialect_for(using).settle(connections[using], [done.outcome]) == set()
    assert row(using).progress.done == 1


def give_to_another(using: str) -> None:
    """Let the only claim end as that of a dead process does, and the next attempt begin."""
    claims = ClaimedExecution.objects.using(using)
    claims.update(token=F("token") + 2**32)


@on_every_database
def test_what_a_later_attempt_has_stored_is_not_shown_to_an_earlier_one(using: str) -> None:
    driver = Driver(using)
    script[:] = [fail_after("old"), nothing]
    work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    [claim] = driver.claim()
    give_to_another(using)
    change = CheckpointChange(claim.job_id, claim.token + 2**32, '"new"')
    assert dialect_for(using).save_checkpoint(connections[using], change)
    done = driver.run(claim)
    assert done.outcome.ending is Ending.RELEASED
    assert len(script) == 1


@on_every_database
def test_a_preempted_exception_of_the_tasks_own_is_a_failure(using: str) -> None:
    def end(context: Any) -> None:
        raise Preempted("made up")

    script[:] = [end]
    result = Driver(using).finish(work_once.enqueue())
    assert result.errors[0].exception_class is Preempted


@on_every_database
def test_nothing_is_stored_after_the_task_has_ended(using: str) -> None:
    kept: list[Any] = []
    script[:] = [kept.append]
    driver = Driver(using)
    work.enqueue()
    done = driver.run(driver.claim()[0])
    for late in (kept[0].checkpoint, kept[0].progress):
        with pytest.raises(Preempted, match="The task has ended"):
            late(1)
    driver.settle(done)
    assert rows(using) == []


# --- progress


@on_every_database
def test_the_last_progress_is_stored_with_the_outcome(using: str) -> None:
    """Also if the task fails, snoozes, or discards its job."""
    for ending in (None, LookupError(), Snooze(HOUR), Discard("enough")):

        def tell(context: Any, ending: Any = ending) -> None:
            for number in range(1, 101):
                context.progress(number, 200, f"row {number}")
            if ending is not None:
                raise ending

        script[:] = [tell]
        driver, result = Driver(using), work_once.enqueue()
        [claim] = driver.claim()
        with statements(using) as executed:
            done = driver.run(claim)
        # At most once a second.
        assert sum("INSERT" in each for each in executed) == 1
        result.refresh()
        assert result.progress.done == 1
        driver.settle(done)
        result.refresh()
        assert result.progress.updated_at is not None
        told = result.progress
        assert (told.done, told.total, told.text, told.percent) == (100, 200, "row 100", 50)
        assert told.fraction == 0.5
        assert Job.objects.using(using).get(pk=result.id).progress == told


@on_every_database
def test_progress_is_stored_again_after_a_second(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def tell(context: Any) -> None:
        for number in range(4):
            monkeypatch.setattr(notes.time, "monotonic", lambda now=number * 0.6: 1e6 + now)
            context.progress(number)
            seen.append(row(using).progress.done)
        monkeypatch.undo()

    script[:] = [tell]
    result = Driver(using).finish(work.enqueue())
    assert seen == [0, 0, 2, 2]
    assert result.progress.done == 3


@on_every_database
def test_a_checkpoint_takes_the_progress_along(using: str) -> None:
    def tell(context: Any) -> None:
        context.progress(1, 4)
        context.progress(2, 4)
        context.checkpoint("here")
        assert row(using).progress.done == 2
        context.progress(3, 4)
        assert row(using).data == '"here"'

    script[:] = [tell]
    result = Driver(using).finish(work.enqueue())
    assert result.progress.done == 3
    assert row(using).data is None


@on_every_database
def test_the_progress_of_an_attempt_is_shown_until_the_next_one_tells(using: str) -> None:
    def begin(context: Any) -> None:
        context.progress(5, 10)
        raise LookupError

    script[:] = [begin, nothing]
    result = Driver(using).finish(work.enqueue())
    assert result.progress.done == 5


@on_every_database
def test_bad_progress_is_refused(using: str) -> None:
    wrong: dict[str, tuple[Any, ...]] = {
        "done must be from 0 to .*, not -1": (-1,),
        "done must be from 0 to .*, not nan": (math.nan,),
        "done must be from 0 to .*, not inf": (math.inf,),
        "done must be from 0 to .*, not 9007199254740993": (2**53 + 1,),
        "done must be a number, not str": ("1",),
        "done must be a number, not bool": (True,),
        "done must be a number, not NoneType": (None,),
        "total must be more than 0 .*, not 0": (1, 0),
        "total must be more than 0 .*, not -5": (1, -5),
        "total must be more than 0 .*, not nan": (1, math.nan),
        "total must be a number, not str": (1, "2"),
        "text must be a string, not int": (1, 2, 3),
        f"text has {LONGEST_TEXT + 1} characters": (1, 2, "x" * (LONGEST_TEXT + 1)),
        "NUL character": (1, 2, "a\0"),
        "half a surrogate pair": (1, 2, "\ud800"),
    }

    def tell(context: Any) -> None:
        for message, arguments in wrong.items():
            with pytest.raises((TypeError, ValueError), match=message):
                context.progress(*arguments)
        assert rows(using) == []
        context.progress(0.25, 0.5, "Å😀" * (LONGEST_TEXT // 2))

    script[:] = [tell]
    result = Driver(using).finish(work.enqueue())
    assert result.progress == Progress(
        0.25, 0.5, "Å😀" * (LONGEST_TEXT // 2), result.progress.updated_at
    )


@on_every_database
def test_more_than_everything_is_everything(using: str) -> None:
    script[:] = [lambda context: context.progress(2**53, 3)]
    result = Driver(using).finish(work.enqueue())
    assert (result.progress.done, result.progress.percent) == (2**53, 100)


# --- what cannot be stored, or read


@on_every_database
def test_data_that_cannot_be_stored_are_refused(using: str) -> None:
    def store(context: Any) -> None:
        context.checkpoint("good")
        with pytest.raises(TaskArgumentError, match=r"checkpoint\['a'\]"):
            context.checkpoint({"a": object()})
        with pytest.raises(TaskArgumentError, match="Pass its primary key"):
            context.checkpoint([Job.objects.using(using).get()])
        with pytest.raises(TaskArgumentError, match="1,048,576"):
            context.checkpoint("x" * 2**20)
        assert context.checkpointed == "good"
        raise LookupError

    script[:] = [store, nothing]
    Driver(using).finish(work.enqueue())
    assert found == [None, "good"]


@on_every_database
@pytest.mark.parametrize("text", ["{", "", '{"a":NaN}', "[1", "~z::!!!"])
def test_a_row_that_does_not_decode_fails_the_job(using: str, text: str) -> None:
    script[:] = [fail_after(VALUE), nothing]
    driver, result = Driver(using), work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    Checkpoint.objects.using(using).update(data=text)
    driver.finish(result)
    assert issubclass(result.errors[-1].exception_class, DeserializationError)
    assert result.attempts == 2  # It will be no better the next time.


@on_every_database
def test_a_row_names_no_model_instance(using: str) -> None:
    from steady_queue_core.arguments import encode

    script[:] = [fail_after(VALUE), nothing]
    driver, result = Driver(using), work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    Checkpoint.objects.using(using).update(data=encode([Job.objects.using(using).get()]))
    driver.finish(result)
    assert "refers to a model instance" in result.errors[-1].traceback


@on_every_database
def test_checkpoints_are_sealed(using: str, settings: Any) -> None:
    options = {"sign": True, "encrypt": True, "compress_over": 10}
    settings.TASKS = tasks(using, backoff=0, payload=options)
    script[:] = [fail_after("x" * 1000), fail_after("y"), nothing]
    driver, result = Driver(using), work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    assert row(using).data.startswith("~zes:")
    driver.finish(result)
    assert found == [None, "x" * 1000, "y"]


@on_every_database
@pytest.mark.parametrize("copied", [True, False])
def test_a_checkpoint_of_another_job_is_refused(using: str, settings: Any, copied: bool) -> None:
    settings.TASKS = tasks(using, backoff=0, payload={"sign": True})
    driver = Driver(using)
    script[:] = [fail_after("a"), fail_after("b")]
    first, _ = work.enqueue(), work.enqueue()
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    a, b = Checkpoint.objects.using(using).order_by("pk")
    Checkpoint.objects.using(using).filter(pk=a.pk).update(data=b.data if copied else '"b"')
    script[:] = [nothing, nothing]
    driver.finish(first)
    wanted = PayloadSignatureError if copied else UnsignedPayloadError
    assert first.errors[-1].exception_class is wanted
    assert "b" not in found[2:3] or found[2] == "b"


@on_every_database
def test_progress_that_was_tampered_with_is_none(using: str) -> None:
    script[:] = [lambda context: context.progress(1, 2)]
    result = Driver(using).finish(work.enqueue())
    Checkpoint.objects.using(using).update(done=-1)
    result.refresh()
    assert result.progress is None


# --- transactions


@on_every_database
def test_a_checkpoint_commits_with_the_tasks_own_transaction(using: str) -> None:
    def roll_back(context: Any) -> None:
        context.checkpoint("kept")
        with atomic(using=using):
            context.checkpoint("rolled back")
            assert context.checkpointed == "rolled back"
            set_rollback(True, using=using)
        found.append(context.checkpointed)
        raise LookupError

    def commit(context: Any) -> None:
        with atomic(using=using):
            context.checkpoint("committed")
        raise LookupError

    script[:] = [roll_back, commit, nothing]
    Driver(using).finish(work.enqueue())
    assert found == [None, "kept", "kept", "committed"]


@on_every_database
def test_in_a_transaction_progress_waits_for_its_end(using: str) -> None:
    def tell(context: Any) -> None:
        with atomic(using=using):
            context.progress(1)
            assert rows(using) == []
        context.progress(2)
        assert row(using).progress.done == 2
        with atomic(using=using):
            context.progress(3)
            set_rollback(True, using=using)

    script[:] = [tell]
    result = Driver(using).finish(work.enqueue())
    assert result.progress.done == 3


@on_every_server
def test_in_a_transaction_a_claim_that_was_lost_meanwhile_is_seen(using: str) -> None:
    """Although the transaction has read the claim before, and would go on seeing it."""

    def look(context: Any) -> None:
        with atomic(using=using):
            assert ClaimedExecution.objects.using(using).exists()
            elsewhere(lambda: give_to_another(using))
            assert not context.is_held()
            with pytest.raises(Preempted):
                context.checkpoint(1)

    script[:] = [look]
    work.enqueue()
    driver = Driver(using)
    assert driver.run(driver.claim()[0]).outcome.ending is Ending.FINISHED
    assert rows(using) == []


@on_every_server
@pytest.mark.parametrize("by", ["is_held", "checkpoint"])
def test_in_a_transaction_nobody_takes_the_job_away_until_its_end(using: str, by: str) -> None:
    log: list[str] = []

    def hold(context: Any) -> None:
        with atomic(using=using):
            context.checkpoint("held") if by == "checkpoint" else context.is_held()
            taker = threading.Thread(target=take)
            taker.start()
            taker.join(0.3)  # It only has to be waiting; it is seen that it has not got it.
            log.append("task")
        taker.join()

    def take() -> None:
        try:
            give_to_another(using)
            log.append("taken")
        finally:
            connections[using].close()

    script[:] = [hold]
    work.enqueue()
    driver = Driver(using)
    driver.run(driver.claim()[0])
    assert log == ["task", "taken"]


def elsewhere(operation: Any) -> None:
    """Do something on another connection."""

    def run() -> None:
        try:
            operation()
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@on_every_database
def test_a_task_that_is_delivered_transactionally_stores_no_checkpoint(using: str) -> None:
    def store(context: Any) -> None:
        assert context.is_held()
        assert context.checkpointed is None
        context.progress(1, 2)
        context.progress(2, 2, "all")
        with pytest.raises(CheckpointRefusedError, match="choose another delivery"):
            context.checkpoint(1)

    script[:] = [store]
    result = Driver(using).finish(work_in_a_transaction.enqueue())
    assert str(result.progress) == "2 of 2 (100%): all"


@on_every_database
def test_the_progress_of_a_task_that_was_rolled_back_is_stored(using: str) -> None:
    def tell(context: Any) -> None:
        context.progress(1, 2)
        raise LookupError

    script[:] = [tell, tell]
    result = Driver(using).finish(work_in_a_transaction.enqueue())
    assert result.progress.done == 1
    assert result.status.name == "FAILED"


# --- the database is in trouble


def end_session(using: str) -> None:
    """Let the server end the session of this thread's connection."""
    postgres = connections[using].vendor == "postgresql"
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()" if postgres else "SELECT connection_id()")
        [number] = cursor.fetchone()

    def end() -> None:
        with connections[using].cursor() as cursor:
            cursor.execute(
                f"SELECT pg_terminate_backend({number})" if postgres else f"KILL {number}"
            )

    elsewhere(end)


@on_every_server
def test_a_connection_that_was_closed_meanwhile_is_opened_again(using: str) -> None:
    def compute(context: Any) -> None:
        context.checkpoint(1)
        end_session(using)
        context.checkpoint(2)
        end_session(using)
        assert context.is_held()
        raise LookupError

    script[:] = [compute, nothing]
    Driver(using).finish(work.enqueue())
    assert found == [None, 2]


@on_every_database
def test_an_error_of_the_database_is_raised(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise OperationalError("no space left")

    def store(context: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Dialect, "save_checkpoint", refuse)
            patch.setattr(Dialect, "is_lost_connection", lambda *args: False)
            with pytest.raises(OperationalError, match="no space left"):
                context.checkpoint(1)
            context.progress(1)  # No reason to fail.
            patch.setattr(Dialect, "save_checkpoint", lambda *args: pytest.fail("asked again"))
            context.progress(2)
        assert context.is_held()
        context.checkpoint(2)
        assert row(using).progress.done == 2

    script[:] = [store]
    result = Driver(using).finish(work.enqueue())
    assert result.progress.done == 2


# --- where rows go


@on_every_database
def test_nothing_stays_of_a_job_that_is_not_preserved(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0, preserve_finished_jobs=False)

    def tell(context: Any) -> None:
        context.progress(1)
        context.progress(2)

    for attempts in ([tell], [fail_after(1), nothing], [fail_after(1), tell]):
        script[:] = attempts
        work.enqueue()
        Driver(using).work()
        assert (rows(using), Job.objects.using(using).count()) == ([], 0)


@on_every_database
def test_nothing_stays_of_a_task_that_takes_no_context_any_more(using: str, settings: Any) -> None:
    """Nor does a plain job pay for it."""
    settings.TASKS = tasks(using, backoff=0, preserve_finished_jobs=False)
    driver = Driver(using)
    script[:] = [nothing]
    work.enqueue()
    [claim] = driver.claim()
    assert driver.run(claim).outcome.sequel is None
    plain.enqueue()
    [claim] = driver.claim()
    assert driver.run(claim).outcome.sequel is None


@on_every_database
def test_a_job_that_ended_when_its_worker_died_leaves_nothing(using: str, settings: Any) -> None:
    for preserve in (True, False):
        settings.TASKS = tasks(using, backoff=0, preserve_finished_jobs=preserve)
        driver = Driver(using)
        script[:] = [lambda context: context.checkpoint(1)]
        work.enqueue()
        [claim] = driver.claim()
        done = driver.run(claim)
        entry = FinishedEntry.read(FinishedEntry.of(done.outcome))
        error = ProcessExitError("gone")
        snapshot = JournalSnapshot(frozenset(), {claim.job_id: entry})
        Rescuer(QueueDatabase(using)).rescue_process(driver.name, snapshot, error)
        assert rows(using) == []


@on_every_database
def test_an_attempt_after_a_crash_finds_the_checkpoint(using: str) -> None:
    driver = Driver(using)
    script[:] = [lambda context: context.checkpoint(VALUE)]
    work.enqueue()
    [claim] = driver.claim()
    driver.run(claim)
    snapshot = JournalSnapshot(frozenset([claim.job_id]), {})
    error = ProcessExitError("gone")
    Rescuer(QueueDatabase(using)).rescue_process(driver.name, snapshot, error)
    script[:] = [nothing]
    Driver(using).work()
    assert found == [None, VALUE]


@on_every_database
def test_an_attempt_after_one_that_was_broken_off_finds_the_checkpoint(using: str) -> None:
    driver = Driver(using)
    script[:] = [lambda context: context.checkpoint(VALUE), nothing]
    work.enqueue()
    [claim] = driver.claim()
    driver.run(claim)
    dialect_for(using).settle(connections[using], [outcomes.released(claim)])
    driver.work()
    assert found == [None, VALUE]


@on_every_database
def test_a_row_goes_with_its_job(using: str) -> None:
    """However that is deleted."""

    def tell(context: Any) -> None:
        context.checkpoint(1)
        context.progress(1)

    def fail(context: Any) -> None:
        tell(context)
        raise LookupError

    def one(attempt: Any, **options: Any) -> Any:
        script[:] = [attempt]
        result = work_once.using(**options).enqueue()
        Driver(using).work()
        assert len(rows(using)) == 1
        return Job.objects.using(using).get(pk=result.id)

    jobs = Job.objects.using(using)
    later = dialect_for(using).current_time(connections[using]) + HOUR
    one(fail).discard()
    assert rows(using) == []
    one(tell)
    assert FinishedJobs(jobs.all(), later).clear(10) == 1
    assert rows(using) == []
    one(fail)
    assert FailedJobs(jobs.all(), later).clear(10) == 1
    assert rows(using) == []
    one(tell, retention=timedelta(seconds=1))
    assert RetainedJobs(jobs.all(), later).clear(10) == 1
    assert rows(using) == []
    one(tell)
    assert jobs.clear_finished_in_batches(finished_before=later) == 1
    assert rows(using) == []
    one(fail).delete()
    assert rows(using) == []
    script[:] = [fail]
    work.enqueue()
    driver = Driver(using)
    driver.settle(driver.run(driver.claim()[0]))
    assert jobs.discard() == 1  # It waits for its next attempt.
    assert rows(using) == []


@on_every_database
def test_what_a_job_has_left_behind_is_cleared(using: str) -> None:
    """Here somebody has deleted jobs in SQL."""
    script[:] = [fail_after(n) for n in range(4)]
    results = [work_once.enqueue() for _ in script]
    Driver(using).work()
    for result in results[1:3]:
        with connections[using].cursor() as cursor:
            cursor.execute("DELETE FROM steady_queue_jobs WHERE id = %s", [int(result.id)])
    strays = StrayCheckpoints(using, Job.objects.using(using))
    cleared = 0
    while not strays.exhausted:
        cleared += strays.clear(3)
    assert cleared == 2
    kept = [int(results[0].id), int(results[3].id)]
    assert ids_of(using, Checkpoint) == kept
    assert "StrayCheckpoints" in dict(
        expired(using, dialect_for(using).current_time(connections[using]))
    )


@on_every_database
def test_a_cancelled_job_keeps_its_row(using: str) -> None:
    script[:] = [fail_after(VALUE)]
    work.enqueue()
    driver = Driver(using)
    driver.settle(driver.run(driver.claim()[0]))
    assert Job.objects.using(using).cancel() == 1
    assert FailedExecution.objects.using(using).count() == 1
    assert row(using).data is not None


@on_every_database
def test_a_first_attempt_asks_for_no_checkpoint(using: str) -> None:
    """A job that does not use any of it costs no statement."""
    driver = Driver(using)
    script[:] = [nothing]
    work.enqueue()
    [claim] = driver.claim()
    with statements(using) as executed:
        done = driver.run(claim)
    assert not executed
    assert done.outcome.sequel is None


@on_every_database
def test_threads_of_a_task_may_store(using: str) -> None:
    def spread(context: Any) -> None:
        threads = [
            threading.Thread(target=elsewhere, args=[lambda n=n: context.checkpoint(n)])
            for n in range(4)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert context.checkpointed in range(4)

    script[:] = [spread]
    Driver(using).finish(work.enqueue())
    assert rows(using) == []


@on_every_database
def test_a_coroutine_may_store_from_its_own_functions(using: str) -> None:
    async def run(context: Any) -> None:
        await sync_to_async(context.checkpoint)("x")
        assert context.checkpointed == "x"

    script[:] = [run]
    Driver(using).finish(work_in_a_coroutine.enqueue())


@on_every_database
def test_statements_are_logged(using: str, settings: Any) -> None:
    """With ``DEBUG`` Django formats them."""
    settings.DEBUG = True
    connections[using].close()
    script[:] = [lambda context: (context.progress(1, 2, "100 %s"), context.checkpoint("%Y"))]
    result = Driver(using).finish(work.enqueue())
    assert str(result.progress) == "1 of 2 (50%): 100 %s"


@on_every_server
def test_a_claim_that_a_frozen_task_has_locked_does_not_keep_others_from_being_rescued(
    using: str,
) -> None:
    driver = Driver(using)
    script[:] = [nothing, nothing, nothing]
    for _ in range(3):
        work.enqueue()
    claims = driver.claim()
    locked, others = claims[1], {claims[0].job_id, claims[2].job_id}
    change = CheckpointChange(locked.job_id, locked.token, "1")
    with connections[using].cursor() as cursor:
        is_postgres = connections[using].vendor == "postgresql"
        cursor.execute(
            "SET lock_timeout = '300ms'" if is_postgres else "SET innodb_lock_wait_timeout = 1"
        )
    rescuer, error = Rescuer(QueueDatabase(using)), ProcessExitError("gone")
    with holding(using, lambda: dialect_for(using).save_checkpoint(connections[using], change), 30):
        with pytest.raises(Unavailable):
            rescuer.rescue_process(driver.name, JournalSnapshot(), error)
        assert set(ids_of(using, ReadyExecution)) == others
        assert ids_of(using, ClaimedExecution) == [locked.job_id]
    rescuer.rescue_process(driver.name, JournalSnapshot(), error)
    assert len(ids_of(using, ReadyExecution)) == 3
    connections[using].close()


def ids_of(using: str, model: Any) -> list[int]:
    return sorted(model.objects.using(using).values_list("pk", flat=True))
