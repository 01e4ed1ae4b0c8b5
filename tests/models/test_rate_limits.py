"""The gate of rate limits on each database: what it permits, stores, costs, and survives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Unique, limits_concurrency, limits_rate, task
from steady_queue_core.configuration import Configuration
from steady_queue_core.conformance import threads
from steady_queue_core.dialects import ClaimedJob, Ending, JobRate, portable
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.features.rates.closing_up import ClosingUp
from steady_queue_core.features.rates.gate import Answer, Ask, Gate
from steady_queue_core.features.rates.starts import RatedStarts
from steady_queue_core.models import (
    BlockedExecution,
    Job,
    Permit,
    Rate,
    ReadyExecution,
    ScheduledExecution,
    UniqueKey,
)
from steady_queue_core.models.operations.idle_keys import IDLE, IdleRates
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.followers import follows_in_chain
from steady_queue_core.processes.worker.lanes import Lanes
from steady_queue_core.tasks.metadata import JobMetadata
from steady_queue_core.tasks.notes import AttemptNotes
from steady_queue_core.testing import run_enqueued_tasks
from steady_queue_core.timezones import to_microseconds

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
MICROS = 3600 * 1_000_000
RAN: list[int] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    RAN.clear()


@limits_rate(to=1, per=HOUR, burst=2)
@task(max_attempts=3)
def work(number: int = 0, *, fails: bool = False) -> None:
    RAN.append(number)
    if fails:
        raise ValueError("told to")


@limits_rate(to=1, per=HOUR, group="even")
@task
def work_alone_in_its_hour(number: int = 0) -> None:
    RAN.append(number)


@limits_concurrency(key="one")
@limits_rate(to=1, per=HOUR, group="limited")
@task
def work_alone(number: int = 0) -> None:
    RAN.append(number)


@limits_rate(to=1, per=HOUR, group="unique")
@task(unique=Unique(key="one", until="started"))
def work_once(number: int = 0) -> None:
    RAN.append(number)


@limits_rate(to=1, per=HOUR, burst=2)
@task(takes_context=True)
async def acheck(context: Any) -> None:
    RAN.append(context.checkpointed or 0)


@task
def plain() -> None:
    """Have no limit."""


class Worker:
    """What a worker does with the jobs that it has claimed."""

    def __init__(self, using: str) -> None:
        self.using, self.driver, self.starts = using, Driver(using), RatedStarts()
        self.database = QueueDatabase(using)

    def turn(self, limit: int = 100) -> list[ClaimedJob]:
        """Claim jobs, settle those that do not start, and return the others."""
        claims = self.driver.claim(limit=limit)
        not_yet = self.starts.not_yet(claims, len(claims), self.database)
        for outcome in not_yet.values():
            self.driver.settle(RunResult(outcome))
        # A slow machine is not to let the moment pass.
        for key, given in self.starts._given.items():
            self.starts._given[key] = given._replace(until=given.until + 600)
        return [claim for claim in claims if claim.job_id not in not_yet]

    def ask(self, claims: Sequence[ClaimedJob], room: int) -> list[tuple[int, Ending]]:
        """Return which of these jobs do not start, and what becomes of them."""
        not_yet = self.starts.not_yet(claims, room, self.database)
        return [(job_id, outcome.ending) for job_id, outcome in not_yet.items()]

    def let_pass(self, claim: ClaimedJob) -> None:
        """Let the moment pass in which a job may start."""
        given = self.starts._given[claim.job_id, claim.token]
        self.starts._given[claim.job_id, claim.token] = given._replace(until=given.since)

    def finish(self, claims: Sequence[ClaimedJob]) -> None:
        for claim in claims:
            assert self.starts.may_start(claim)
            self.driver.settle(self.driver.run(claim))


def gate(using: str) -> Gate:
    return Gate(connections[using], dialect_for(using), time.monotonic)


def ask(job_id: int, key: str = "k", to: int = 1, burst: int = 0, slot: int | None = None) -> Ask:
    return Ask(job_id, JobRate(key, to, HOUR, burst), slot)


def started(answers: dict[int, Answer]) -> list[int]:
    return sorted(job_id for job_id, answer in answers.items() if answer.permission is not None)


def ids(model: Any, using: str) -> list[int]:
    return sorted(model.objects.using(using).values_list("pk", flat=True))


def slots(using: str) -> list[tuple[int, int] | None]:
    jobs = Job.objects.using(using).order_by("pk")
    return [JobMetadata.read(job.metadata).slot for job in jobs]


def make_due(using: str) -> None:
    """Let all scheduled jobs be due."""
    present = dialect_for(using).current_time(connections[using])
    rows = ScheduledExecution.objects.using(using)
    rows.update(due_at=present - timedelta(minutes=1))


# --- jobs -----------------------------------------------------------------------------------------


@on_every_database
def test_jobs_in_excess_are_scheduled_for_their_slots_in_order(using: str) -> None:
    worker = Worker(using)
    results = [work.enqueue(number) for number in range(6)]
    worker.finish(worker.turn())
    assert RAN == [0, 1]
    rows = ScheduledExecution.objects.using(using).order_by("due_at")
    assert [row.pk for row in rows] == [int(result.id) for result in results[2:]]
    dues = [row.due_at for row in rows]
    for former, later in pairwise(dues):
        assert abs((later - former) - HOUR) < timedelta(seconds=1)
    for result in results[2:]:
        result.refresh()
        assert (result.status, result.attempts, result.errors) == ("READY", 0, [])
    assert worker.turn() == []


@on_every_database
def test_a_job_keeps_its_slot_until_it_starts_and_gets_another_one_for_its_next_attempt(
    using: str,
) -> None:
    worker = Worker(using)
    for number in range(3):
        work.enqueue(number, fails=True)
    claims = worker.turn()
    assert slots(using)[:2] == [None, None]
    [_, _, slot] = slots(using)
    assert slot is not None
    assert slot[1] == 0
    make_due(using)
    worker.driver.dispatch()
    assert worker.turn() == []  # It comes too early, and goes back for the same slot.
    assert slots(using)[2] == slot
    worker.finish(claims)
    assert worker.turn() == []  # The others have failed, and ask for their second attempts.
    after = [each for each in slots(using) if each is not None]
    assert [attempts for _, attempts in after] == [1, 1, 0]
    assert slot[0] < after[0][0] < after[1][0]


@on_every_database
def test_a_job_in_excess_gives_back_its_permit(using: str) -> None:
    worker = Worker(using)
    first, second, third = (int(work_alone.enqueue(number).id) for number in range(3))
    [claim] = worker.turn()
    assert not follows_in_chain(claim)
    assert ids(BlockedExecution, using) == [second, third]
    worker.finish([claim])
    assert worker.turn() == []
    assert ids(ScheduledExecution, using) == [second]
    assert ids(ReadyExecution, using) == ids(Permit, using) == [third]
    assert worker.turn() == []
    assert ids(ScheduledExecution, using) == [second, third]
    assert ids(Permit, using) == []
    assert first not in ids(ScheduledExecution, using)


@on_every_database
def test_a_key_until_the_start_stays_with_a_job_that_does_not_start_yet(using: str) -> None:
    worker = Worker(using)
    first = work_once.enqueue(1)
    claims = worker.turn()
    dialect_for(using).free_started_keys(connections[using], claims)
    worker.finish(claims)
    second = work_once.enqueue(2)
    assert second.id != first.id
    assert worker.turn() == []
    assert UniqueKey.objects.using(using).get().job_id == int(second.id)
    assert work_once.enqueue(3).duplicate


@on_every_database
def test_a_job_that_waits_too_long_after_its_permission_asks_again(using: str) -> None:
    worker = Worker(using)
    work.enqueue(1)
    [claim] = worker.turn()
    worker.let_pass(claim)
    assert not worker.starts.may_start(claim)
    assert not worker.starts.may_start(claim)  # It has asked for nothing since.
    plain.enqueue()
    [other] = worker.turn()
    assert worker.starts.may_start(other)


def run_in_lanes(worker: Worker, claims: Sequence[ClaimedJob]) -> list[RunResult]:
    """Run jobs that were permitted to start; return their results."""
    journal = SimpleNamespace(start=lambda *_: None, end=lambda _: None)
    context: Any = SimpleNamespace(journal=journal, waiter=SimpleNamespace(sleeping=False))
    executor = worker.driver.executor
    settings = Configuration.Worker(threads=1, coroutines=1)
    lanes = Lanes(context, settings, executor, gate=worker.starts)
    lanes.registration = cast(Any, SimpleNamespace(holds_lease=True))
    done: list[RunResult] = []
    try:
        lanes.submit([(claim, executor.task_of(claim)) for claim in claims])
        deadline = time.monotonic() + 10
        while len(done) < len(claims) and time.monotonic() < deadline:
            done += lanes.collect(len(claims))
            time.sleep(0.01)
    finally:
        lanes.close()
    return done


@on_every_database
def test_a_lane_gives_back_a_job_that_is_too_late(using: str) -> None:
    worker = Worker(using)
    for number in (1, 2):
        work.enqueue(number)
    late, in_time = worker.turn()
    worker.let_pass(late)
    done = run_in_lanes(worker, [late, in_time])
    assert [each.outcome.ending for each in done] == [Ending.RELEASED, Ending.FINISHED]
    assert RAN == [2]


@on_every_database
def test_a_coroutine_asks_once_its_checkpoint_is_there(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes, it is over before the start is permitted."""
    worker = Worker(using)
    acheck.enqueue()
    [claim] = worker.turn()
    worker.driver.settle(RunResult(outcomes.released(claim)))
    worker.starts.withdraw([claim])
    worker.starts.give_back(worker.database)
    [again] = worker.turn()

    def load_slowly(self: AttemptNotes) -> None:
        if (again.job_id, again.token) in worker.starts._given:
            worker.let_pass(again)
        self._text = None

    monkeypatch.setattr(AttemptNotes, "load", load_slowly)
    [result] = run_in_lanes(worker, [again])
    assert (result.outcome.ending, RAN) == (Ending.RELEASED, [])


def pass_hours(using: str, hours: float) -> None:
    """Let what is stored of starts and slots be older."""
    passed, past = round(hours * MICROS), timedelta(hours=hours)
    for row in Rate.objects.using(using):
        row.gate, row.line = row.gate - passed, row.line - passed
        row.save(using=using)
    for row in ScheduledExecution.objects.using(using):
        row.due_at -= past
        row.save(using=using)
    for job in Job.objects.using(using).exclude(metadata=None):
        metadata = JobMetadata.read(job.metadata)
        if metadata.slot is not None:
            slot = (metadata.slot[0] - passed, metadata.slot[1])
            text = replace(metadata, slot=slot).text()
            Job.objects.using(using).filter(pk=job.pk).update(metadata=text)


def due_in(using: str) -> list[float]:
    """Return in how many hours the scheduled jobs are due, in their order."""
    present = dialect_for(using).current_time(connections[using])
    rows = ScheduledExecution.objects.using(using).order_by("pk")
    return [round((portable.aware(row.due_at) - present) / HOUR, 1) for row in rows]


def look_again(looks: ClosingUp) -> int:
    """Look at all lines; return how many jobs have moved up."""
    looks._next_look, looks._next = 0.0, dict.fromkeys(looks._next, (0.0, 2.0))
    moved, _ = looks.do()
    return moved


@on_every_database
def test_jobs_close_up_to_those_that_are_gone(using: str) -> None:
    worker = Worker(using)
    for number in range(20):
        work_alone_in_its_hour.enqueue(number)
    worker.finish(worker.turn())
    assert due_in(using) == [float(hours) for hours in range(1, 20)]
    gone = Job.objects.using(using).filter(pk__in=ids(ScheduledExecution, using)[2:-3])
    assert gone.cancel() == 14
    pass_hours(using, 0.5)
    looks = ClosingUp(using)
    assert looks.do() == (0, 2.0)  # It is too early: no slot has passed.
    assert look_again(looks) == 3
    assert due_in(using) == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert look_again(looks) == 0  # Nobody has got a slot meanwhile: the line is shorter now.
    work_alone_in_its_hour.enqueue(20)
    worker.turn()
    assert due_in(using) == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    for _ in range(6):
        pass_hours(using, 1.01)
        worker.driver.dispatch()
        worker.finish(worker.turn())
    assert RAN == [0, 1, 2, 17, 18, 19, 20]


@on_every_database
def test_a_job_that_was_put_off_does_not_move_up(using: str) -> None:
    worker = Worker(using)
    for number in range(4):
        work_alone_in_its_hour.enqueue(number)
    worker.finish(worker.turn())
    [first, second, third] = ids(ScheduledExecution, using)
    present = dialect_for(using).current_time(connections[using])
    Job.objects.using(using).get(pk=second).reschedule(present + 2.5 * HOUR)
    Job.objects.using(using).get(pk=first).cancel()
    pass_hours(using, 1.01)
    assert ClosingUp(using).do()[0] == 1
    assert due_in(using) == [1.5, 0.0]
    assert ids(ScheduledExecution, using) == [second, third]


@on_every_database
def test_a_slot_that_passes_unused_is_given_up_at_once(using: str) -> None:
    worker = Worker(using)
    for number in range(6):
        work_alone_in_its_hour.enqueue(number)
    worker.finish(worker.turn())
    first, *_ = ids(ScheduledExecution, using)
    Job.objects.using(using).filter(pk__gte=first, pk__lt=first + 3).cancel()
    pass_hours(using, 1.01)
    assert ClosingUp(using).do()[0] == 2
    assert due_in(using) == [0.0, 1.0]
    pass_hours(using, 0.01)
    worker.driver.dispatch()
    assert ClosingUp(using).do()[0] == 0  # Whoever is about to start has its slot.
    assert due_in(using) == [1.0]
    worker.finish(worker.turn())
    assert RAN == [0, 4]


@on_every_database
def test_a_job_that_runs_now_starts_if_its_rate_is_free_and_else_keeps_its_place(
    using: str,
) -> None:
    worker = Worker(using)
    for number in range(4):
        work_alone_in_its_hour.enqueue(number)
    worker.finish(worker.turn())
    last = ids(ScheduledExecution, using)[-1]
    place = slots(using)[-1]
    for free in (False, True):
        assert Job.objects.using(using).get(pk=last).run_now()
        worker.finish(worker.turn())
        if not free:
            assert due_in(using) == [1.0, 2.0, 3.0]
            assert slots(using)[-1] == place
            pass_hours(using, 1.01)
    assert RAN == [0, 3]
    assert due_in(using) == [0.0, 1.0]


@on_every_database
def test_tests_do_not_wait_for_rates(using: str) -> None:
    for number in range(5):
        work.enqueue(number)
    run_enqueued_tasks()
    assert RAN == [0, 1, 2, 3, 4]
    assert ids(Rate, using) == []


@on_every_database
@pytest.mark.parametrize("way", ["late", "withdrawn", "forgotten", "after a lock"])
def test_a_start_that_does_not_take_place_is_given_back(using: str, way: str) -> None:
    """Else a job that waits behind a long one would lose an hour, here."""
    worker = Worker(using)
    for number in range(2):
        work_once.using(unique_key=str(number)).enqueue(number)
    [claim] = worker.turn()
    worker.let_pass(claim)
    if way == "late":
        assert not worker.starts.may_start(claim)
    elif way == "withdrawn":
        worker.starts.withdraw([claim])
    elif way == "after a lock":
        rate = JobMetadata.read(claim.metadata).rate_limit
        assert rate is not None
        worker.starts._held_up[rate.key] = time.monotonic()
    worker.starts.give_back(worker.database)
    assert not worker.starts.may_start(claim)
    worker.driver.settle(RunResult(outcomes.released(claim)))
    worker.finish(worker.turn())
    assert RAN == [0]  # Before the other one, which has a slot.
    with CaptureQueriesContext(connections[using]) as queries:
        worker.starts.give_back(worker.database)
    assert len(queries) == 0


@on_every_database
def test_what_is_given_back_is_less_the_longer_it_was_kept(using: str) -> None:
    [answer] = gate(using).ask([ask(1)]).values()
    assert answer.permission is not None
    before = Rate.objects.using(using).get().gate
    old = answer.permission._replace(since=time.monotonic() - 1800)
    gate(using).give_back([old])
    assert MICROS / 2 - 1e6 < before - Rate.objects.using(using).get().gate < MICROS / 2 + 1e6
    gate(using).give_back([answer.permission._replace(since=time.monotonic() - 7200)])
    Rate.objects.using(using).all().delete()
    gate(using).give_back([answer.permission])
    assert ids(Rate, using) == []


# --- the gate -------------------------------------------------------------------------------------


@on_every_database
def test_a_permission_costs_three_statements_and_others_nothing(using: str) -> None:
    gate(using).ask([ask(0, key, to=100, burst=100) for key in "abc"])
    with CaptureQueriesContext(connections[using]) as queries:
        answers = gate(using).ask(
            [ask(number, "abc"[number % 3], to=100, burst=100) for number in range(30)]
        )
    assert started(answers) == list(range(30))
    sent = [query["sql"].split()[0] for query in queries]
    assert [word for word in sent if word in ("SELECT", "INSERT", "UPDATE")] == [
        "SELECT", "SELECT", "INSERT",
    ]  # fmt: skip
    worker = Worker(using)
    plain.enqueue()
    claims = worker.driver.claim()
    with CaptureQueriesContext(connections[using]) as queries:
        assert worker.starts.not_yet(claims, len(claims), worker.database) == {}
    assert len(queries) == 0


@on_every_database
def test_keys_have_their_own_starts_and_compare_exactly(using: str) -> None:
    keys = ["a", "A", "á", "a ", "k" * 255, "k" * 254]
    answers = gate(using).ask([ask(number, key) for number, key in enumerate(keys * 2)])
    assert started(answers) == list(range(len(keys)))
    assert sorted(Rate.objects.using(using).values_list("pk", flat=True)) == sorted(keys)


@on_every_database
def test_jobs_with_slots_come_before_others(using: str) -> None:
    gate(using).ask([ask(1)])
    Rate.objects.using(using).update(gate=0)
    present = to_microseconds(dialect_for(using).current_time(connections[using]))
    asks = [ask(1), ask(2, slot=present - 1_000), ask(3, slot=present - 2_000)]
    Rate.objects.using(using).update(line=present)
    answers = gate(using).ask(asks)
    assert started(answers) == [3]
    assert 0 < answers[2].delay < answers[1].delay


def race(using: str, count: int) -> list[dict[int, Answer]]:
    barrier = threading.Barrier(count, timeout=60)

    def one(number: int) -> Callable[[], dict[int, Answer]]:
        def run() -> dict[int, Answer]:
            barrier.wait()
            return gate(using).ask([ask(number, "a"), ask(number + count, "b")][:: _way(number)])

        return run

    return threads.run_all(using, [one(number) for number in range(count)], 60)


def _way(number: int) -> int:
    return -1 if number % 2 else 1


@on_every_database
def test_of_many_that_ask_at_once_no_more_start_than_may(using: str) -> None:
    """Without rows at first, and with them."""
    for _ in range(3):
        answers = race(using, 12)
        assert sum(len(started(each)) for each in answers) == 2
        given = [a.slot for each in answers for a in each.values() if a.permission is None]
        assert len(given) == 22
        for key in range(2):
            of_key = [
                a.slot for each in answers for job_id, a in each.items()
                if a.permission is None and job_id // 12 == key
            ]  # fmt: skip
            assert len(set(of_key)) == 11
        Rate.objects.using(using).update(gate=0, line=0, shift=0)


@pytest.fixture
def unlocked(using: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A gate that locks nothing, and takes its time."""
    lock, answer = Gate._lock, Gate._answer

    def look(self: Gate, keys: Sequence[str]) -> Any:
        return {row.pk: row for row in self._rows.filter(pk__in=keys)}

    def slowly(self: Gate, *args: Any) -> Any:
        time.sleep(0.2)
        return answer(self, *args)

    monkeypatch.setattr(Gate, "_lock", look)
    monkeypatch.setattr(Gate, "_answer", slowly)
    yield
    monkeypatch.setattr(Gate, "_lock", lock)


@pytest.mark.usefixtures("unlocked")
@pytest.mark.django_db(databases=["postgres"], transaction=True)
@pytest.mark.parametrize("using", ["postgres"])
def test_without_the_lock_more_would_start(using: str) -> None:
    gate(using).ask([ask(0, "a"), ask(0, "b")])
    Rate.objects.using(using).update(gate=0, line=0, shift=0)
    assert sum(len(started(each)) for each in race(using, 4)) > 2


@on_every_database
def test_a_row_that_is_deleted_meanwhile_is_inserted_again(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert, times = Gate._insert, []

    def and_delete(self: Gate, keys: Any) -> None:
        insert(self, keys)
        times.append(1)
        if len(times) < 3:
            Rate.objects.using(using).all().delete()

    monkeypatch.setattr(Gate, "_insert", and_delete)
    assert started(gate(using).ask([ask(1)])) == [1]
    assert len(times) == 3
    Rate.objects.using(using).all().delete()
    monkeypatch.setattr(Gate, "_insert", lambda *_: None)
    assert gate(using).ask([ask(1)]) == {}


@on_every_database
def test_idle_rows_are_deleted_unless_somebody_starts_meanwhile(using: str) -> None:
    gate(using).ask([ask(number, key) for number, key in enumerate("abcd")])
    present = dialect_for(using).current_time(connections[using])
    rows, long_ago = Rate.objects.using(using), to_microseconds(present - IDLE) - 1
    rows.filter(pk__in="abc").update(gate=long_ago, line=long_ago, shift=0)
    rows.filter(pk="c").update(line=long_ago - 10, shift=20)

    class Beaten(IdleRates):
        def _delete(self, keys: Sequence[Any]) -> int:
            lock = self.database.dialect.lock_rows

            def beaten(connection: Any, found: Any, *, wait: bool) -> Any:
                patch.undo()
                # As if it had come a moment earlier.
                rows.filter(pk="b").update(gate=to_microseconds(present))
                return lock(connection, found, wait=wait)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(self.database.dialect, "lock_rows", beaten)
                return super()._delete(keys)

    assert Beaten(using, present).clear(10) == 1
    assert ids(Rate, using) == ["b", "c", "d"]
    assert IdleRates(using, present).clear(10) == 0
    assert IdleRates(using, present + IDLE + 2 * HOUR).clear(10) == 3


# --- hostile rows ---------------------------------------------------------------------------------

NUMBERS = [0, -1, 2**63 - 1, -(2**63)]


@on_every_database
def test_no_numbers_of_a_row_stop_its_jobs(using: str) -> None:
    for number in NUMBERS:
        for columns in (["gate"], ["line"], ["shift"], ["gate", "line", "shift", "burst"]):
            Rate.objects.using(using).all().delete()
            gate(using).ask([ask(0)])
            Rate.objects.using(using).update(**dict.fromkeys(columns, number))
            looks = ClosingUp(using)
            looks.do()
            assert look_again(looks) == 0
            answers = gate(using).ask([ask(1), ask(2, slot=number), ask(3, slot=2**64)])
            assert len(answers) == 3
            assert all(a.permission or 0 < a.delay < 10 * MICROS for a in answers.values())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["default"])
@pytest.mark.parametrize("value", ["'soon'", "x'00ff'", "1.5", "1e300", "''"])
def test_columns_that_hold_no_number_count_as_nothing(using: str, value: str) -> None:
    gate(using).ask([ask(0)])
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"UPDATE steady_queue_rates SET gate = {value}, line = {value}, shift = {value}, "
            f"period = {value}, burst = {value}, [limit] = {value}"
        )
    present = dialect_for(using).current_time(connections[using])
    str(Rate.objects.get())
    assert started(gate(using).ask([ask(1)])) == [1]
    assert Rate.objects.get().gate > to_microseconds(present)


@on_every_database
@pytest.mark.parametrize(
    "text",
    [
        '{"rate": 7}', '{"rate"', '{"rate": ["k", 5]}', '{"rate":{"$tuple":["k",-5,60]}}',
        '{"slot":{"$tuple":[1,0]}}',
    ],
)  # fmt: skip
def test_a_job_with_damaged_metadata_starts_like_others(using: str, text: str) -> None:
    worker = Worker(using)
    work.enqueue(1)
    Job.objects.using(using).update(metadata=text)
    worker.finish(worker.turn())
    assert RAN == [1]


@on_every_database
@pytest.mark.parametrize("slot", [(-(10**30), 0), (10**30, 0), (0, 0), (0, -5)])
def test_a_forged_slot_lets_no_more_start_and_keeps_nobody_away(
    using: str, slot: tuple[int, int]
) -> None:
    worker = Worker(using)
    for number in range(4):
        work.enqueue(number)
    for job in Job.objects.using(using):
        text = JobMetadata.read(job.metadata)
        forged = JobMetadata(rate=text.rate, slot=slot).text()
        Job.objects.using(using).filter(pk=job.pk).update(metadata=forged)
    worker.finish(worker.turn())
    assert len(RAN) == 2
    looks = ClosingUp(using)
    looks.do()
    assert look_again(looks) == 0
    present = dialect_for(using).current_time(connections[using])
    for row in ScheduledExecution.objects.using(using):
        assert row.due_at < present + 3 * HOUR


@on_every_database
def test_no_more_starts_are_permitted_than_there_is_room_for(using: str) -> None:
    worker = Worker(using)
    for number in range(3):  # Two of them may start.
        work.enqueue(number)
    plain.enqueue()
    claims = worker.driver.claim(limit=10)
    ids = [claim.job_id for claim in claims]
    others = [(each, Ending.RELEASED) for each in ids[1:3]]
    assert worker.ask(claims, room=1) == others
    assert worker.ask(claims[1:3], room=2) == [(ids[2], Ending.RETRIED)]
    # Those before it in the queue take its room.
    assert worker.ask([claims[3], claims[2]], room=1) == [(ids[2], Ending.RELEASED)]


@on_every_database
def test_a_database_that_cannot_answer_lets_nobody_start(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import IntegrityError, InterfaceError

    for error, ending, delay in [
        (InterfaceError("gone"), Ending.RELEASED, 0.0),
        (IntegrityError("no"), Ending.RETRIED, 1.0),
    ]:
        worker = Worker(using)
        work.enqueue(1)
        claims = worker.driver.claim()

        def fail(self: Gate, *args: Any, raised: Exception = error) -> Any:
            raise raised

        monkeypatch.setattr(Gate, "ask", fail)
        not_yet = worker.starts.not_yet(claims, len(claims), worker.database)
        monkeypatch.undo()
        [outcome] = not_yet.values()
        assert (outcome.ending, outcome.delay) == (ending, delay)
        assert not worker.starts.may_start(claims[0])
        connections[using].close()
        worker.driver.settle(RunResult(outcome))
        Job.objects.using(using).all().delete()
