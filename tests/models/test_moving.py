"""Jobs that wait get another queue, priority or time; any job is enqueued again."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import wait
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from steady_queue_core import (
    Batch,
    Previous,
    Unique,
    call,
    chain,
    limits_concurrency,
    limits_rate,
    task,
)
from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending, limited_job, stored_id
from steady_queue_core.dialects import Ending, QueueSelector, dialect_for, portable
from steady_queue_core.errors import DuplicateTask, UncopiableError
from steady_queue_core.features.fair import of_database as fair_queues
from steady_queue_core.features.fair.queues import FairQueues
from steady_queue_core.models import (
    BatchMember,
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    Permit,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
    Step,
    WaitingExecution,
)
from steady_queue_core.own_tasks import OWN_TASKS

from ..core.driver import Driver
from .everywhere import Jobs, on_every_database, on_every_server, where_snapshots_are_old
from .recurrence import tasks

HOUR = timedelta(hours=1)
STATES: tuple[Any, ...] = (
    ReadyExecution, ScheduledExecution, BlockedExecution, WaitingExecution, ClaimedExecution,
    FailedExecution,
)  # fmt: skip
RAN: list[Any] = []


@task(takes_context=True, max_attempts=3, backoff=lambda error, result: 3600)
def take_steps(context: Any, name: str) -> Any:
    done = context.step("first", lambda: name)
    if context.checkpointed is None:
        context.checkpoint("half way")
        raise LookupError(name)
    RAN.append((done, context.checkpointed))
    return name


@task(takes_context=True, max_attempts=9, backoff=lambda error, result: 3600)
def count_on(context: Any) -> None:
    RAN.append(context.checkpointed or 0)
    for number in RAN:
        context.step(f"step {number}", lambda: None)
    context.checkpoint(len(RAN))
    raise LookupError


@task
def note(what: Any = None) -> Any:
    RAN.append(what)
    return what


@task
def note_also(what: Any, more: Any = None) -> Any:
    RAN.append((what, more))
    return what


@task(unique=Unique(key=lambda what: what))
def note_once(what: Any) -> None:
    RAN.append(what)


@task(unique=Unique(key=lambda what: what, on_conflict="replace"))
def note_latest(what: Any) -> None:
    RAN.append(what)


@limits_concurrency(key=lambda what: what, to=1)
@task
def note_alone(what: Any) -> None:
    RAN.append(what)


@limits_rate(key="all", to=1, per=HOUR)
@task
def note_seldom(what: Any) -> None:
    RAN.append(what)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    RAN.clear()
    settings.TASKS = tasks(using)


class Moving(Jobs):
    """Jobs of which some are limited."""

    def limited(self, **fields: Any) -> int:
        [new] = self.dialect.enqueue(self.connection, [limited_job("a", 1, **fields)])
        return stored_id(new)

    def waiting(self) -> int:
        [pk] = self.ready()
        row = ReadyExecution.objects.using(self.using).get(pk=pk)
        WaitingExecution.objects.using(self.using).create(
            job_id=pk, queue_name=row.queue_name, rank=0, created_at=row.created_at, width=1
        )
        ReadyExecution.objects.using(self.using).filter(pk=pk)._raw_delete(self.using)
        return pk

    def states(self, pk: int) -> list[str]:
        """The states of a job, of which it has at most one."""
        return [
            model.__name__.removesuffix("Execution").lower()
            for model in STATES
            if model.objects.using(self.using).filter(pk=pk).exists()
        ]

    def placed(self, pk: int) -> set[tuple[str, int]]:
        """The queue and the rank of a job, as all its rows have them."""
        rows = [self.all.filter(pk=pk)]
        rows += [model.objects.using(self.using).filter(pk=pk) for model in STATES[:5]]
        return {each for some in rows for each in some.values_list("queue_name", "rank")}

    def due(self, pk: int) -> datetime:
        row = ScheduledExecution.objects.using(self.using).get(pk=pk)
        assert self.all.get(pk=pk).scheduled_at == row.due_at
        return portable.aware(row.due_at)

    def one_of_each(self) -> dict[str, int]:
        running = self.claimed()[0].job_id
        [failed], [finished] = self.failed(), self.finished()
        [ready], [scheduled] = self.ready(), self.ready(delay=HOUR)
        self.limited()
        return {
            "ready": ready, "scheduled": scheduled, "blocked": self.limited(),
            "waiting": self.waiting(), "claimed": running, "failed": failed, "finished": finished,
        }  # fmt: skip


@on_every_database
def test_jobs_that_wait_get_another_queue_and_priority_where_they_are(using: str) -> None:
    jobs = Moving(using)
    each = jobs.one_of_each()
    assert jobs.all.filter(pk__in=each.values()).move_to("mail", priority=7, batch_size=2) == 4
    for state, pk in each.items():
        assert jobs.states(pk) == ([state] if state != "finished" else [])
        waits = state in ("ready", "scheduled", "blocked", "waiting")
        assert jobs.placed(pk) == {("mail", -7) if waits else ("default", 0)}
    assert jobs.all.get(pk=each["ready"]).move_to(priority=-100)
    assert jobs.placed(each["ready"]) == {("mail", 100)}
    assert not jobs.all.get(pk=each["claimed"]).move_to("other")
    assert [claim.job_id for claim in jobs.claim(9, "mail")] == [each["ready"]]


@on_every_database
def test_what_was_moved_is_claimed_where_it_is_now(using: str) -> None:
    jobs = Moving(using)
    first, second, third = jobs.ready(3)
    assert not jobs.claim(9, "mail")
    jobs.all.get(pk=third).move_to(priority=1)
    jobs.all.get(pk=second).move_to("mail")
    assert [claim.job_id for claim in jobs.claim(9, "mail")] == [second]
    assert [claim.job_id for claim in jobs.claim(9, "default")] == [third, first]


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db
def test_names_and_priorities_that_no_job_can_have_are_refused(using: str) -> None:
    jobs = Moving(using)
    [pk] = jobs.ready()
    for name in ("", "x" * 256, "a\0b", "a\nb", " a", "a ", "\ud800"):
        with pytest.raises(ValueError, match="name of the queue"):
            jobs.all.move_to(name)
    for priority in (101, -101, 1.5, True, "1"):
        with pytest.raises(ValueError, match="priority must be a whole number"):
            jobs.all.move_to("mail", priority=priority)
    with pytest.raises(ValueError, match="Give a queue_name"):
        jobs.all.move_to()
    for time, error in (
        (datetime(2026, 1, 1), ValueError),
        (timedelta.max, ValueError),
        (5, TypeError),
        (None, TypeError),
    ):
        with pytest.raises(error, match="run_after"):
            jobs.all.reschedule(time)
    assert jobs.placed(pk) == {("default", 0)}
    assert jobs.states(pk) == ["ready"]


@on_every_database
def test_jobs_that_wait_get_another_time(using: str) -> None:
    jobs = Moving(using)
    each = jobs.one_of_each()
    due = jobs.present(using).replace(microsecond=0) + 2 * HOUR
    assert jobs.all.filter(pk__in=each.values()).reschedule(due, batch_size=2) == 4
    for state in ("ready", "scheduled", "blocked"):
        assert jobs.states(each[state]) == ["scheduled"]
        assert jobs.due(each[state]) == due
    assert jobs.states(each["waiting"]) == ["waiting"]
    waiting = WaitingExecution.objects.using(using).get(pk=each["waiting"])
    assert portable.aware(waiting.due_at) == due
    for state in ("claimed", "failed"):
        assert jobs.states(each[state]) == [state]

    before = jobs.present(using)
    assert jobs.all.get(pk=each["ready"]).reschedule(HOUR)
    assert HOUR <= jobs.due(each["ready"]) - before <= HOUR + timedelta(minutes=1)
    assert jobs.all.get(pk=each["ready"]).reschedule(timezone.now() - HOUR)
    jobs.dialect.dispatch(jobs.connection, 10)
    assert jobs.states(each["ready"]) == ["ready"]
    assert not jobs.all.get(pk=each["claimed"]).reschedule(HOUR)


@on_every_database
def test_the_permit_of_a_job_that_is_put_off_passes_on(using: str) -> None:
    jobs = Moving(using)
    first, second, third = (jobs.limited() for _ in range(3))
    assert list(map(jobs.states, (first, second))) == [["ready"], ["blocked"]]
    assert jobs.all.filter(pk__in=[first, third]).reschedule(HOUR) == 2
    assert [jobs.states(pk) for pk in (first, second, third)] == [
        ["scheduled"], ["ready"], ["scheduled"],
    ]  # fmt: skip
    assert jobs.ids(Permit) == [second]
    jobs.all.filter(pk=first).run_now()
    assert jobs.states(first) == ["blocked"]
    [claim] = jobs.claim(9)
    jobs.dialect.settle(jobs.connection, [ending(Ending.FINISHED, claim, attempts=1)])
    assert jobs.states(first) == ["ready"]


TAKING = {
    "reschedule": lambda rows: rows.reschedule(HOUR, batch_size=1),
    "cancel": lambda rows: rows.cancel(batch_size=1),
    "discard": lambda rows: rows.discard(batch_size=1),
}


@on_every_database
@pytest.mark.parametrize("take", TAKING)
def test_jobs_that_get_the_permits_of_those_taken_out_of_ready_are_left_alone(
    using: str, take: str
) -> None:
    jobs = Moving(using)
    holder, heir, later = (jobs.limited() for _ in range(3))
    [other] = jobs.ready()
    assert TAKING[take](jobs.all.filter(readyexecution__isnull=False)) == 2
    assert jobs.ids(ReadyExecution) == [heir]
    assert jobs.states(later) == ["blocked"]
    assert not {"ready", "blocked"}.intersection(jobs.states(holder) + jobs.states(other))
    # Blocked ones that belong to the selection are met in that state.
    assert TAKING[take](jobs.all.filter(pk__in=[heir, later])) == 2


@on_every_database
def test_a_permit_stays_and_blocked_jobs_come_by_their_new_priority(using: str) -> None:
    jobs = Moving(using)
    holder, second, third = (jobs.limited() for _ in range(3))
    assert jobs.all.filter(pk__in=[holder, third]).move_to("mail", priority=5) == 2
    assert jobs.ids(Permit) == [holder]
    [claim] = jobs.claim(9, "mail")
    jobs.dialect.settle(jobs.connection, [ending(Ending.FINISHED, claim, attempts=1)])
    assert jobs.states(third) == ["ready"]
    assert jobs.states(second) == ["blocked"]
    assert Semaphore.objects.using(using).get().value == 0


@on_every_database
def test_a_job_gets_the_turn_of_its_new_queue(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queues, "_source", lambda alias: FairQueues({"fair": 1.0}))
    monkeypatch.setattr(fair_queues, "_known", {})
    jobs = Moving(using)
    fair = {"metadata": '{"fair": "a"}', "fair_key": "a"}
    crowd = jobs.ready(4, "fair", **fair)
    [moved] = jobs.ready(1)
    assert jobs.all.get(pk=moved).move_to("fair")
    assert [claim.job_id for claim in jobs.claim(2, "fair")] == [crowd[0], moved]
    assert jobs.all.get(pk=crowd[3]).move_to("default")
    row = ReadyExecution.objects.using(using).get(pk=crowd[3])
    assert row.turn == crowd[3]


@on_every_database
def test_a_signed_job_that_is_moved_again_takes_its_turn_again(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_queues, "_source", lambda alias: FairQueues({"fair": 1.0}))
    monkeypatch.setattr(fair_queues, "_known", {})
    settings.TASKS = tasks(using, payload={"sign": True, "encrypt": False})
    jobs = Moving(using)
    crowd = jobs.ready(2, "fair", metadata='{"fair": ""}', fair_key="")
    moved = int(note.enqueue("tea").id)
    assert jobs.all.get(pk=moved).move_to("mail")
    assert jobs.all.get(pk=moved).move_to("fair")
    assert [claim.job_id for claim in jobs.claim(3, "fair")] == [*crowd, moved]


@on_every_database
def test_signed_payloads_move_along_and_forged_ones_stay(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, payload={"sign": True, "encrypt": False})
    driver, jobs = Driver(using), Moving(using)
    half, honest = take_steps.enqueue("tea"), note.using(run_after=HOUR).enqueue("cake")
    driver.work()
    forged = note.enqueue("poison")
    jobs.all.filter(pk=forged.id).update(arguments='{"args":["more"],"kwargs":{}}')
    assert jobs.all.filter(finished_at=None).move_to("mail", priority=3) == 2
    assert jobs.placed(int(forged.id)) == {("default", 0)}
    assert jobs.all.filter(pk__in=[half.id, honest.id]).run_now() == 2
    for claim in driver.claim("mail"):
        driver.settle(driver.run(claim))
    assert sorted(map(str, RAN)) == ["('tea', 'half way')", "cake"]
    assert take_steps.get_result(half.id).return_value == "tea"

    again = take_steps.enqueue("milk")
    for claim in driver.claim():
        if claim.job_id == int(again.id):
            driver.settle(driver.run(claim))
    Step.objects.using(using).filter(job_id=again.id).update(data='"water"')
    assert not jobs.all.get(pk=again.id).move_to("mail")
    assert jobs.all.get(pk=again.id).move_to(priority=1)


@where_snapshots_are_old
def test_a_claim_that_sees_the_job_of_before_reads_its_arguments_again(
    using: str, settings: Any
) -> None:
    settings.TASKS = tasks(using, payload={"sign": True})
    driver, moved = Driver(using), note.enqueue("tea")
    with transaction.atomic(using=using):
        list(Job.objects.using(using).all())  # From now on the transaction sees the past.
        threads.start(
            using,
            lambda: Job.objects.using(using).filter(pk=moved.id).move_to("default", priority=2),
        ).result(20)
        [claim] = driver.claim()
    driver.settle(driver.run(claim))
    assert RAN == ["tea"]


@where_snapshots_are_old
def test_what_is_signed_again_is_what_there_is_now(using: str, settings: Any) -> None:
    """Although the transaction in which a job is moved sees the past."""
    settings.TASKS = tasks(using, payload={"sign": True, "encrypt": False})
    jobs = Moving(using)
    moved = jobs.all.filter(pk=count_on.enqueue().id)

    def attempt(queue_name: str) -> None:
        driver = Driver(using)
        moved.run_now()
        for claim in driver.claim(queue_name):
            driver.settle(driver.run(claim))

    def go_on() -> None:
        moved.move_to("mail")
        attempt("mail")

    attempt("default")
    with connections[using].cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    try:
        with transaction.atomic(using=using):
            list(jobs.all)  # From now on the transaction sees the past.
            threads.start(using, go_on).result(20)
            assert moved.move_to("fast", priority=2) == 1
    finally:
        connections[using].close()
    attempt("fast")
    assert RAN == [0, 1, 2]
    assert Step.objects.using(using).count() == 3


ACTS = {
    "move_to": lambda rows: rows.move_to("default", priority=1),
    "reschedule": lambda rows: rows.reschedule(-HOUR),
}


@on_every_database
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("commits", [True, False])
def test_a_job_that_is_being_claimed_is_waited_for(using: str, act: str, commits: bool) -> None:
    jobs = Moving(using)
    [pk] = jobs.ready()

    def claim() -> None:
        dialect_for(using).claim(connections[using], jobs.worker, QueueSelector(), 1)

    with threads.holding(using, claim, 20) as end:
        acting = threads.start(using, lambda: ACTS[act](Job.objects.using(using).filter(pk=pk)))
        wait([acting], timeout=0.3)
        end(commit=commits)
    assert acting.result(20) == (0 if commits else 1)
    expected = "claimed" if commits else {"move_to": "ready", "reschedule": "scheduled"}[act]
    assert jobs.states(pk) == [expected]


@on_every_server
@pytest.mark.parametrize("act", ACTS)
def test_no_job_is_lost_or_claimed_twice_while_others_claim(using: str, act: str) -> None:
    jobs, stop = Moving(using), Event()
    ids = [*jobs.ready(60), *(jobs.limited() for _ in range(10))]

    def claim() -> list[int]:
        found: list[int] = []
        connection, dialect = connections[using], dialect_for(using)
        while not stop.is_set():
            for each in dialect.claim(connection, jobs.worker, QueueSelector(), 3):
                found.append(each.job_id)
                dialect.settle(connection, [ending(Ending.FINISHED, each, attempts=1)])
            dialect.dispatch(connection, 10)
        return found

    def change() -> int:
        dialect, changed = dialect_for(using), 0
        while not stop.is_set():
            try:
                changed += ACTS[act](Job.objects.using(using).filter(pk__in=ids))
            except Exception as error:
                if not dialect.is_contention(connections[using], error):
                    raise
            if not Job.objects.using(using).filter(finished_at=None).exists():
                stop.set()
        return changed

    claiming = [threads.start(using, claim) for _ in range(2)]
    changing = threads.start(using, change)
    try:
        assert changing.result(60) > 0
    finally:
        stop.set()
    claimed = Counter(pk for each in claiming for pk in each.result(60))
    assert claimed == dict.fromkeys(ids, 1)
    assert not any(model.objects.using(using).exists() for model in (*STATES, Permit))


def copies_of(jobs: Moving, pk: int) -> list[Any]:
    return list(jobs.all.filter(pk__gt=pk).order_by("pk"))


@on_every_database
def test_any_job_is_enqueued_again_as_it_was_called(using: str) -> None:
    driver, jobs = Driver(using), Moving(using)
    done = note.using(queue_name="mail", priority=3, metadata={"who": "Ada"}).enqueue("tea")
    driver.work()
    copy = jobs.all.get(pk=done.id).enqueue_copy()
    assert copy is not None
    assert (copy.queue_name, copy.priority) == ("mail", 3)
    assert jobs.states(copy.pk) == ["ready"]
    driver.work()
    assert RAN == ["tea", "tea"]
    assert note.get_result(str(copy.pk)).metadata == {"who": "Ada"}
    each = jobs.one_of_each()
    newest = jobs.all.order_by("-pk")[0].pk
    assert jobs.all.filter(pk__in=each.values()).enqueue_copies(batch_size=2) == len(each)
    copies = copies_of(jobs, newest)
    assert [jobs.states(copy.pk) for copy in copies].count(["blocked"]) == 1
    assert [jobs.states(copy.pk) for copy in copies].count(["ready"]) == len(each) - 1
    assert all(copy.attempts == 0 and copy.finished_at is None for copy in copies)
    # Copies are not copied again.
    count = jobs.all.count()
    assert jobs.all.enqueue_copies(batch_size=3) == count


@on_every_database
def test_a_copy_is_of_no_batch(using: str) -> None:
    driver, jobs = Driver(using), Moving(using)
    with Batch("rows", on_finish=note) as batch:
        member = note.enqueue("tea")
    driver.work()
    batch.refresh()
    copy = jobs.all.get(pk=member.id).enqueue_copy()
    assert copy is not None
    assert copy.metadata is None
    assert BatchMember.objects.using(using).count() == 1
    driver.work()
    assert RAN.count("tea") == 2


@on_every_database
def test_a_member_that_needs_the_results_of_others_is_not_copied(using: str) -> None:
    jobs = Moving(using)
    chain(call(note, "tea"), call(note_also, Previous())).enqueue()
    waiting = jobs.ids(WaitingExecution)
    [pk] = waiting
    with pytest.raises(UncopiableError):
        jobs.all.get(pk=pk).enqueue_copy()
    assert jobs.all.enqueue_copies() == 1


@on_every_database
def test_a_unique_key_is_had_by_one_job_still(using: str) -> None:
    driver, jobs = Driver(using), Moving(using)
    first = note_once.enqueue("tea")
    for result in (first, note_latest.enqueue("milk")):
        with pytest.raises(DuplicateTask, match=f"job {result.id} has its unique key"):
            jobs.all.get(pk=result.id).enqueue_copy()
    assert jobs.all.enqueue_copies() == 0
    driver.work()
    again = note_once.enqueue("tea")
    driver.work()
    assert jobs.all.filter(pk__in=[first.id, again.id]).enqueue_copies() == 1
    assert jobs.all.filter(pk__in=[first.id, again.id]).enqueue_copies() == 0
    assert note_once.enqueue("tea").id != again.id
    driver.work()
    assert RAN == ["tea", "milk", "tea", "tea"]


@on_every_database
def test_a_copy_has_the_limits_that_there_are_now(using: str) -> None:
    driver, jobs = Driver(using), Moving(using)
    done = note_alone.enqueue("tea")
    driver.work()
    jobs.all.filter(pk=done.id).update(concurrency_limit=9)
    holder = note_alone.enqueue("tea")
    copy = jobs.all.get(pk=done.id).enqueue_copy()
    assert copy is not None
    assert jobs.states(copy.pk) == ["blocked"]
    assert Semaphore.objects.using(using).get().limit == 1
    jobs.all.filter(pk=holder.id).update(concurrency_discards=True)
    assert jobs.all.get(pk=holder.id).enqueue_copy() is None
    seldom = note_seldom.enqueue("cake")
    copy = jobs.all.get(pk=seldom.id).enqueue_copy()
    assert copy is not None
    assert copy.metadata == jobs.all.get(pk=seldom.id).metadata


@on_every_database
def test_what_cannot_be_copied_is_left_alone(using: str) -> None:
    jobs = Moving(using)
    damaged, own = jobs.ready(1, metadata="{"), jobs.ready(1, task_path=min(OWN_TASKS))
    for [pk] in (damaged, own):
        with pytest.raises(UncopiableError, match=f"Job {pk} cannot be copied"):
            jobs.all.get(pk=pk).enqueue_copy()
    assert jobs.all.enqueue_copies() == 0
