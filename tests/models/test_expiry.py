"""Jobs that expire before they start: on every database, by the parts that a worker is made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from steady_queue_core import Snooze, arguments, limits_concurrency, task
from steady_queue_core.compat import TaskResultStatus, task_finished
from steady_queue_core.configuration import Configuration
from steady_queue_core.dialects import portable
from steady_queue_core.models import (
    BlockedExecution,
    FailedExecution,
    Job,
    Permit,
    Queue,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.processes.base.system import lease_clock
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.lanes import Lanes
from steady_queue_core.processes.worker.refusals import StartClock, refusal_of
from steady_queue_core.retries import constant

from ..core.driver import Driver
from ..processes.waiting import wait_for
from .everywhere import on_every_database
from .recurrence import tasks

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EXPIRED = "steady_queue_core.errors.TaskExpired"

RAN: list[Any] = []


@task(max_attempts=3)
def note(what: Any = None) -> Any:
    RAN.append(what)
    return what


@task
async def note_in_a_coroutine(what: Any = None) -> Any:
    RAN.append(what)
    return what


@limits_concurrency(key="one", group="expiry")
@task
def note_alone(what: Any = None) -> Any:
    RAN.append(what)
    return what


@task(max_attempts=3, backoff=constant(3600))
def fail(what: Any = None) -> None:
    RAN.append(what)
    raise LookupError(what)


@task
def snooze() -> None:
    RAN.append("snooze")
    raise Snooze(HOUR)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    RAN.clear()
    settings.TASKS = tasks(using)


def let_time_pass(using: str, by: timedelta = 2 * HOUR) -> None:
    """Have jobs wait for longer."""
    for job in Job.objects.using(using).all():
        job.enqueued_at -= by
        job.save()
    rows = ScheduledExecution.objects.using(using)
    for row in rows.all():
        row.due_at -= by
        row.save()


def assert_expired(using: str, result: Any) -> None:
    result.refresh()
    assert result.status is TaskResultStatus.FAILED
    assert [each.exception_class_path for each in result.errors] == [EXPIRED]
    assert (result.attempts, result.started_at) == (0, None)
    assert result.finished_at is not None
    failure = FailedExecution.objects.using(using).get(pk=int(result.id))
    assert failure.exception_class == EXPIRED
    assert failure.message.startswith("The job expired at 20")
    assert failure.message.endswith("+00:00, before it started.")


@on_every_database
def test_a_job_that_has_not_started_by_then_never_starts(using: str) -> None:
    driver = Driver(using)
    results = [note.using(expires=HOUR).enqueue(1), note.using(expires=3 * HOUR).enqueue(2)]
    past = datetime(2020, 1, 1, tzinfo=UTC)
    results += [note.using(expires=past).enqueue(3), note.enqueue(4)]
    results += [note_in_a_coroutine.using(expires=HOUR).enqueue(5)]
    told: list[Any] = []

    def hear(task_result: Any, **payload: Any) -> None:
        told.append((task_result.args, task_result.status, task_result.attempts))

    let_time_pass(using)
    task_finished.connect(hear)
    try:
        driver.work()
    finally:
        task_finished.disconnect(hear)
    assert RAN == [2, 4]
    for result in (results[0], results[2], results[4]):
        assert_expired(using, result)
    assert sorted(told) == [
        ([1], "FAILED", 0), ([2], "SUCCESSFUL", 1), ([3], "FAILED", 0), ([4], "SUCCESSFUL", 1),
        ([5], "FAILED", 0),
    ]  # fmt: skip
    assert Job.objects.using(using).filter(finished_at=None).count() == 0


@on_every_database
def test_a_job_that_is_scheduled_blocked_or_paused_expires_when_its_turn_comes(using: str) -> None:
    driver = Driver(using)
    holder = note_alone.enqueue(1)
    blocked = [note_alone.using(expires=HOUR).enqueue(2), note_alone.enqueue(3)]
    scheduled = note.using(run_after=MINUTE, expires=HOUR).enqueue(4)
    paused = note.using(queue_name="quiet", expires=HOUR).enqueue(5)
    Queue("quiet", using).pause()
    let_time_pass(using)
    assert BlockedExecution.objects.using(using).count() == 2
    driver.dispatch()
    driver.work()
    # What the expired one waited for passes to the next.
    assert RAN == [1, 3]
    for result in (blocked[0], scheduled):
        assert_expired(using, result)
    paused.refresh()
    assert paused.status is TaskResultStatus.READY
    Queue("quiet", using).resume()
    wait_for(lambda: driver.work(), 20, "the job of the queue that was paused")
    assert_expired(using, paused)
    assert Permit.objects.using(using).count() == 0
    holder.refresh()
    assert holder.status is TaskResultStatus.SUCCESSFUL


@on_every_database
def test_a_claim_that_was_given_back_was_no_start(using: str) -> None:
    driver = Driver(using)
    result = note.using(expires=HOUR).enqueue(1)
    [claim] = driver.claim()
    assert refusal_of(claim, claim.claimed_at) is None
    driver.settle(RunResult(outcomes.released(claim)))
    let_time_pass(using)
    driver.work()
    assert RAN == []
    assert_expired(using, result)


@on_every_database
def test_a_job_that_has_started_keeps_its_later_attempts(using: str) -> None:
    driver = Driver(using)
    failing, snoozing = fail.using(expires=HOUR).enqueue(1), snooze.using(expires=HOUR).enqueue()
    driver.work()
    let_time_pass(using)
    driver.dispatch()
    driver.work()
    assert sorted(RAN, key=str) == [1, 1, "snooze", "snooze"]
    for result in (failing, snoozing):
        result.refresh()
        assert result.status is TaskResultStatus.READY


@on_every_database
def test_a_job_whose_first_attempt_was_lost_keeps_its_others(using: str) -> None:
    driver = Driver(using)
    note.using(expires=HOUR).enqueue(1)
    [claim] = driver.claim()
    attempt = driver.executor._attempt_of(claim)
    driver.settle(attempt.failed(RuntimeError("the process was killed"), claim.claimed_at))
    let_time_pass(using)
    driver.dispatch()
    driver.work()
    assert RAN == [1]


@on_every_database
def test_an_expired_job_that_is_retried_by_hand_runs(using: str) -> None:
    """Somebody wants it all the same."""
    driver = Driver(using)
    expired, cancelled = note.using(expires=HOUR).enqueue(1), note.using(expires=HOUR).enqueue(2)
    cancelled.cancel()
    let_time_pass(using)
    driver.work()
    assert_expired(using, expired)
    assert Job.objects.using(using).retry_failed() == 2
    driver.work()
    assert sorted(RAN) == [1, 2]


@on_every_database
def test_a_job_that_waits_for_a_worker_that_knows_its_task_expires(using: str) -> None:
    driver = Driver(using)
    result = note.using(expires=HOUR).enqueue(1)
    Job.objects.using(using).update(task_path="gone.tasks.note")
    [claim] = driver.claim()
    with pytest.raises(Exception, match="not registered") as raised:
        driver.executor.task_of(claim)
    driver.settle(driver.executor.unknown(claim, cast(Any, raised.value)))
    job = Job.objects.using(using).get()
    assert job.errors is not None
    assert "Left to workers that know it" in job.errors
    let_time_pass(using)
    driver.dispatch()
    driver.work()
    assert RAN == []
    result.refresh()
    assert [each.exception_class_path for each in result.errors] == [EXPIRED]


@on_every_database
def test_a_cancelled_job_is_cancelled_though_it_has_expired(using: str) -> None:
    driver = Driver(using)
    result = note.using(expires=HOUR).enqueue(1)
    [claim] = driver.claim()
    result.cancel()
    driver.settle(RunResult(outcomes.released(claim)))
    let_time_pass(using)
    driver.work()
    result.refresh()
    assert [each.exception_class_path for each in result.errors] == [
        "steady_queue_core.errors.TaskCancelled"
    ]


@on_every_database
def test_a_damaged_expiry_is_none(using: str) -> None:
    driver = Driver(using)
    far = portable.storable(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    for text in ('{"expires":', '{"expires":1}', '{"expires":"never"}', '{"user":{"expires":1}}'):
        result = note.using(expires=HOUR).enqueue(text)
        Job.objects.using(using).filter(pk=result.id).update(metadata=text)
    result = note.using(expires=HOUR).enqueue("far")
    let_time_pass(using)
    Job.objects.using(using).filter(pk=result.id).update(enqueued_at=far)
    driver.work()
    assert len(RAN) == 5
    assert not ReadyExecution.objects.using(using).exists()


# --- in the worker


class Journal:
    """Notes what was marked as started."""

    def __init__(self) -> None:
        self.started: list[int] = []

    def start(self, job_id: int, token: int, ends_at: float | None = None) -> None:
        self.started.append(job_id)

    def end(self, outcome: Any) -> None:
        """Do nothing."""


@pytest.mark.django_db(databases=["default"], transaction=True)
@pytest.mark.parametrize("using", ["default"])
@pytest.mark.parametrize("kind", [note, note_in_a_coroutine])
def test_a_job_that_expires_while_it_waits_in_its_worker_does_not_start(
    using: str, kind: Any
) -> None:
    """It is not even marked as started: if the worker is killed, it loses no attempt."""
    driver, journal = Driver(using), Journal()
    results = [kind.using(expires=HOUR).enqueue(1), kind.enqueue(2)]
    results.append(kind.using(expires=3 * HOUR).enqueue(3))
    asked_at = lease_clock()
    claims = driver.claim()
    context: Any = SimpleNamespace(journal=journal, waiter=SimpleNamespace(sleeping=False))
    lanes = Lanes(context, Configuration.Worker(threads=1), driver.executor)
    lanes.registration = cast(Any, SimpleNamespace(holds_lease=True))
    # They were claimed two hours ago.
    driver.executor.start_clock.note_claim(claims[0].claimed_at, asked_at - 7200)
    try:
        lanes.submit([(claim, driver.executor.task_of(claim)) for claim in claims])
        done: list[Any] = []
        wait_for(lambda: done.extend(lanes.collect(3)) or len(done) == 3, 10, "all results")
    finally:
        lanes.close()
    for each in done:
        driver.settle(each)
    assert sorted(RAN) == [2, 3]
    assert_expired(using, results[0])
    assert sorted(journal.started) == [int(each.id) for each in results[1:]]


def claimed(expires: str, enqueued_at: datetime) -> Any:
    return SimpleNamespace(
        metadata=f'{{"expires":{expires}}}', started_at=None, errors=None, enqueued_at=enqueued_at
    )


@pytest.mark.parametrize("using", ["default"])
def test_the_clock_of_a_worker_is_never_behind_the_database(using: str) -> None:
    """The database may have told its time as soon as it was asked, and it took ten seconds."""
    clock, claimed_at = StartClock(), datetime(2030, 1, 1, tzinfo=UTC)
    soon = claimed(arguments.encode(timedelta(seconds=9)), claimed_at)
    later = claimed(arguments.encode(timedelta(seconds=60)), claimed_at)
    assert refusal_of(soon, clock.now()) is None
    clock.note_claim(claimed_at, lease_clock() - 10)
    assert refusal_of(soon, clock.now()) is not None
    assert refusal_of(later, clock.now()) is None
