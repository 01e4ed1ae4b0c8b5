"""Tasks that a test has enqueued run in its own transaction, on every database."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from steady_queue_core.compat import TaskResultStatus
from steady_queue_core.dialects import Dialect
from steady_queue_core.errors import (
    RollbackRequestedError,
    TooManySnoozesError,
    UnregisteredTaskError,
)
from steady_queue_core.models import Job, Process, Queue, ReadyExecution
from steady_queue_core.testing import captured_tasks, run_enqueued_tasks

from ..app.models import Item
from ..core.samples import Recorder
from ..models.recurrence import tasks
from ..servers.kinds import KINDS
from . import samples
from .samples import DONE

DAY = timedelta(days=1)


def on_every_database(*modes: bool) -> Any:
    """Run a test in a ``TestCase``, or in real transactions, on each database."""
    return pytest.mark.parametrize(
        "using",
        [
            pytest.param(
                alias,
                marks=pytest.mark.django_db(databases=[alias], transaction=real),
                id=f"{alias}{'-real' if real else ''}",
            )
            for alias in ("default", *KINDS)
            for real in modes or (False, True)
        ],
    )


@pytest.fixture(autouse=True)
def _project(request: pytest.FixtureRequest, settings: Any) -> None:
    using = request.getfixturevalue("using") if "using" in request.fixturenames else "default"
    settings.TASKS = tasks(using)
    settings.DATABASE_ROUTERS = [Router(using)]


class Router:
    """Has the project's own rows beside the jobs."""

    def __init__(self, using: str) -> None:
        self.using = using

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return self.using

    db_for_write = db_for_read


def values(results: Any) -> list[Any]:
    return [result.return_value for result in results]


@on_every_database()
def test_what_was_enqueued_runs_by_priority(using: str) -> None:
    samples.note.enqueue("first")
    samples.note.using(priority=5).enqueue("urgent")
    result = samples.note.enqueue("last")
    results = run_enqueued_tasks()
    assert values(results) == DONE == ["urgent", "first", "last"]
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "last")
    assert run_enqueued_tasks() == []
    assert not Process.objects.using(using).exists()


@on_every_database()
def test_coroutines_and_tasks_of_tasks_run(using: str) -> None:
    samples.note_in_a_coroutine.enqueue("row")
    samples.chain.enqueue(3)
    first, *chained = run_enqueued_tasks()
    assert Item.objects.get(pk=first.return_value).name == "row"
    assert values(chained) == [3, 2, 1, 0]


@on_every_database()
def test_arguments_are_those_of_the_codec(using: str) -> None:
    item = Item.objects.create(name="counted")
    samples.count.enqueue(item)
    samples.dated.enqueue(date(2026, 2, 28))
    assert values(run_enqueued_tasks()) == [item, date(2026, 3, 1)]
    item.refresh_from_db()
    assert item.count == 1


@on_every_database()
def test_the_first_error_is_raised_with_its_place(using: str) -> None:
    result = samples.fail.enqueue("broken")
    samples.note.enqueue("later")
    with pytest.raises(LookupError, match="broken") as caught:
        run_enqueued_tasks()
    assert caught.traceback[-1].name == "fail"
    [note] = caught.value.__notes__
    assert note == f"in the task {samples.fail.module_path} #{result.id}, attempt 1 of 1"
    result.refresh()
    assert (result.status, len(result.errors)) == (TaskResultStatus.FAILED, 1)
    assert values(run_enqueued_tasks()) == ["later"]


@on_every_database()
def test_retries_are_followed_when_they_are_due(using: str) -> None:
    samples.stubborn.enqueue(3)
    [result] = run_enqueued_tasks(raise_errors=False)
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 1)
    assert run_enqueued_tasks(until=timedelta(seconds=30)) == []
    [result] = run_enqueued_tasks(until=timedelta(seconds=90), raise_errors=False)
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 2)
    [result] = run_enqueued_tasks(until=timedelta(minutes=10), raise_errors=False)
    assert (result.status, result.attempts) == (TaskResultStatus.SUCCESSFUL, 3)
    assert len(result.errors) == 2
    assert DONE == [1, 2, 3]


@on_every_database()
def test_time_moves_on_in_order_as_far_as_it_is_told(using: str) -> None:
    samples.daily.using(run_after=DAY).enqueue(1)
    samples.note.using(run_after=datetime.now(UTC) + 1.5 * DAY).enqueue("between")
    samples.note.using(run_after=9 * DAY).enqueue("never")
    assert run_enqueued_tasks() == []
    assert values(run_enqueued_tasks(until=DAY / 2)) == []
    run_enqueued_tasks(until=datetime.now(UTC) + 2.5 * DAY)
    assert DONE == [1, "between", 2]
    run_enqueued_tasks(until=4 * DAY)
    assert DONE == [1, "between", 2, 3]


@on_every_database()
def test_the_clock_stands_still_while_a_task_runs(using: str) -> None:
    samples.slow_daily.enqueue(1)
    run_enqueued_tasks(until=2 * DAY)
    assert DONE == [1, 2, 3]


@on_every_database()
def test_queues_and_pauses_are_kept(using: str) -> None:
    for queue in ("mail", "web_a", "web_b", "default"):
        samples.note.using(queue_name=queue).enqueue(queue)
    samples.note.using(queue_name="other", run_after=DAY).enqueue("other")
    Queue("web_b", using=using).pause()
    assert values(run_enqueued_tasks(["web*", "default"])) == ["web_a", "default"]
    assert values(run_enqueued_tasks("mail", until=2 * DAY)) == ["mail"]
    assert values(run_enqueued_tasks(until=2 * DAY)) == ["other"]
    Queue("web_b", using=using).resume()
    assert values(run_enqueued_tasks()) == ["web_b"]


@on_every_database()
def test_limits_are_kept(using: str) -> None:
    samples.alone.enqueue("a", 2)
    samples.alone.enqueue("a")
    samples.only_one.enqueue()
    results = run_enqueued_tasks()
    assert DONE == [2, "end of 2", 0, 1, "end of 1", 0]
    assert values(results) == [2, 0, True, 1, 0]


@on_every_database(False)
def test_a_task_that_fails_leaves_the_transaction_usable(using: str) -> None:
    samples.write_and_fail.enqueue("written")
    samples.break_the_transaction.enqueue("gone")
    samples.note.enqueue("after")
    with transaction.atomic(using=using):
        first, second, third = run_enqueued_tasks(raise_errors=False)
    assert [each.status for each in (first, second, third)] == ["FAILED", "FAILED", "SUCCESSFUL"]
    assert second.errors[0].exception_class_path == "django.db.utils.IntegrityError"
    assert [item.name for item in Item.objects.all()] == ["written"]


@on_every_database()
def test_what_is_delivered_transactionally_is_kept_or_rolled_back_as_a_whole(using: str) -> None:
    samples.write_in_one_transaction.enqueue("gone", fails=True)
    samples.write_in_one_transaction.enqueue("kept")
    samples.take_it_back.enqueue("taken back")
    first, second, third = run_enqueued_tasks(raise_errors=False)
    assert [each.status for each in (first, second, third)] == ["FAILED", "SUCCESSFUL", "FAILED"]
    [error] = third.errors
    assert error.exception_class is RollbackRequestedError
    assert [item.name for item in Item.objects.all()] == ["kept"]
    assert DONE == ["returned", "committed"]


@on_every_database()
def test_what_is_delivered_at_most_once_does_not_come_back(using: str) -> None:
    samples.come_back.enqueue()
    with pytest.raises(TooManySnoozesError, match="is to start at most once"):
        run_enqueued_tasks()


@on_every_database(True)
def test_without_a_transaction_a_task_keeps_what_it_wrote(using: str) -> None:
    samples.break_the_transaction.enqueue("kept")
    with pytest.raises(DatabaseError):
        run_enqueued_tasks()
    assert [item.name for item in Item.objects.all()] == ["kept"]


@on_every_database()
def test_what_a_task_does_after_its_commit_is_done(
    using: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(using=using) as callbacks:
        with transaction.atomic(using=using):
            transaction.on_commit(lambda: DONE.append("the test's"), using=using)
        samples.hook.enqueue("task", using)
        run_enqueued_tasks()
    real = "the test's" in DONE
    assert DONE[real:] in (
        ["task committed", "task ran", "task"],
        ["task ran", "task committed", "task"],
    )
    # A dialect may have one of its own.
    own = [each for each in callbacks if getattr(each, "__name__", "") == "<lambda>"]
    assert len(own) == (not real)


@on_every_database(False)
def test_the_tests_own_commit_hooks_can_be_executed(
    using: str, django_capture_on_commit_callbacks: Any
) -> None:
    samples.note.using(enqueue_on_commit=True).enqueue("never")
    assert run_enqueued_tasks() == []
    with django_capture_on_commit_callbacks(using=using, execute=True):
        samples.note.using(enqueue_on_commit=True).enqueue("committed")
    assert values(run_enqueued_tasks()) == ["committed"]


@on_every_database()
def test_the_signals_are_sent(using: str, recorders: dict[str, Recorder]) -> None:
    samples.note.enqueue("seen")
    run_enqueued_tasks()
    statuses = [[call.status for call in recorders[name].calls] for name in recorders]
    assert statuses == [["READY"], ["RUNNING"], ["SUCCESSFUL"]]


@on_every_database()
def test_a_return_value_that_cannot_be_stored_is_an_error(using: str) -> None:
    samples.unstorable.enqueue()
    with pytest.raises(TypeError, match="return value cannot be stored"):
        run_enqueued_tasks()


@on_every_database()
def test_a_limit_bounds_the_attempts_and_no_limit_is_not_for_ever(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steady_queue_core.testing import runner

    samples.endless.enqueue()
    assert len(run_enqueued_tasks(limit=3)) == 3
    monkeypatch.setattr(runner, "ENDLESS", 5)
    with pytest.raises(RuntimeError, match=r"5 attempts have run, and there is no end.*endless #"):
        run_enqueued_tasks()
    assert not Process.objects.using(using).exists()


@on_every_database()
def test_a_task_that_is_not_known_fails(using: str) -> None:
    samples.note.enqueue("x")
    Job.objects.using(using).update(task_path="nowhere.to_be_found")
    with pytest.raises(UnregisteredTaskError):
        run_enqueued_tasks()


@on_every_database()
def test_it_goes_on_after_a_test_whose_ids_were_larger(using: str) -> None:
    """What a dialect remembers of earlier claims does not hide the jobs of a new test."""
    jobs, ready = Job.objects.using(using), ReadyExecution.objects.using(using)
    for _ in range(3):
        samples.chain.enqueue(20)
        assert len(run_enqueued_tasks()) == 21
    smaller = jobs.latest("pk").pk - 60
    jobs.all().delete()
    result = samples.note.enqueue("again")
    jobs.filter(pk=result.id).update(id=smaller)
    ready.filter(pk=result.id).update(job_id=smaller)
    assert values(run_enqueued_tasks()) == ["again"]


@on_every_database(False)
def test_nobody_is_woken_for_jobs_that_nobody_else_can_see(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[Any] = []

    def ring(self: Dialect, *args: Any) -> None:
        if self.rings:  # Otherwise it has nothing to do.
            rung.append(args)

    monkeypatch.setattr(Dialect, "ring", ring)
    samples.chain.enqueue(3)
    assert len(run_enqueued_tasks()) == 4
    assert rung == []


@pytest.mark.django_db(databases=["postgres"])
def test_no_setting_of_a_queue_process_reaches_the_tests_session(settings: Any) -> None:
    settings.TASKS = tasks("postgres")
    names = ("enable_seqscan", "enable_nestloop", "plan_cache_mode", "lock_timeout", "jit")

    def shown() -> list[str]:
        found = []
        with connections["postgres"].cursor() as cursor:
            for name in names:
                cursor.execute(f"SHOW {name}")
                found.append(cursor.fetchone()[0])
        return found

    before = shown()
    samples.chain.enqueue(3)
    with captured_tasks() as captured:
        run_enqueued_tasks()
    assert (shown(), len(captured)) == (before, 3)
