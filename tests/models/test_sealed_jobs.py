"""Jobs whose payloads are compressed and signed: on every database, wherever payloads are read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from steady_queue_core import (
    call,
    change_recurring_task,
    enqueue_many,
    limits_concurrency,
    recurring,
    schedule_recurring_task,
    task,
)
from steady_queue_core.compat import TaskResultStatus, task_backends
from steady_queue_core.dialects import portable
from steady_queue_core.errors import UnusableRecurringTaskError
from steady_queue_core.models import Job
from steady_queue_core.payloads import PayloadSignatureError, encryption, recurring_scope
from steady_queue_core.processes.base.journal_reader import FinishedEntry
from steady_queue_core.processes.scheduler.mirror import mirror
from steady_queue_core.processes.worker.attempt import Attempt
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.testing import enqueued_tasks, run_enqueued_tasks

from ..app.models import Item
from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import Recurrence, tasks

TEA = "tea " * 500
SIGNED = {"compress_over": 1000, "sign": True}
SIGNATURE_ERROR = "steady_queue_core.payloads.errors.PayloadSignatureError"
UNSIGNED_ERROR = "steady_queue_core.payloads.errors.UnsignedPayloadError"

RAN: list[Any] = []


@task
def pay(account: str, amount: int = 1) -> str:
    RAN.append((account, amount))
    return account


@task
def refund(account: str, amount: int = 1) -> str:
    RAN.append(("refund", account, amount))
    return account


@task(max_attempts=3, backoff=lambda error, result: 0)
def fails(what: str) -> None:
    RAN.append(what)
    raise LookupError(what)


@task
async def pay_in_a_coroutine(account: str) -> str:
    RAN.append(account)
    return account


@task
def rename(item: Item) -> str:
    RAN.append(item.name)
    return item.name


@limits_concurrency(key=lambda account: account)
@task
def pay_alone(account: str) -> str:
    RAN.append(account)
    return account


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    RAN.clear()
    settings.TASKS = tasks(using, payload=SIGNED)
    settings.STEADY_QUEUE = {"scheduler": {"dynamic_tasks_enabled": True}}
    monkeypatch.setattr(recurring_task, "_registry", {})


def row(using: str, result: Any) -> Any:
    return Job.objects.using(using).filter(pk=int(result.id))


def result_of(result: Any) -> Any:
    """Return the result as it is now, whatever its row says of its task."""
    return task_backends["default"].get_result(result.id)


def error_of(result: Any) -> str:
    assert result.status is TaskResultStatus.FAILED
    [error] = result.errors
    return str(error.exception_class_path)


@on_every_database
def test_arguments_and_results_come_out_as_they_went_in(using: str) -> None:
    driver = Driver(using)
    one = pay.enqueue(TEA, amount=2)
    several = enqueue_many(
        [call(pay, "Ada"), call(pay_alone, "Ben"), call(pay_in_a_coroutine, "Cyd")]
    )
    stored = list(Job.objects.using(using).order_by("pk").values_list("arguments", flat=True))
    assert [text.split(":")[0] for text in stored] == ["~zs", "~s", "~s", "~s"]
    assert len(stored[0]) < 500
    [captured, *_] = enqueued_tasks()
    assert (captured.args, captured.kwargs) == ([TEA], {"amount": 2})

    driver.work()

    for result in (one, *several):
        result.refresh()
    assert RAN == [(TEA, 2), ("Ada", 1), "Ben", "Cyd"]
    assert [each.return_value for each in (one, *several)] == [TEA, "Ada", "Ben", "Cyd"]
    assert (one.args, one.kwargs) == ([TEA], {"amount": 2})
    returned = Job.objects.using(using).order_by("pk").values_list("return_value", flat=True)
    assert [text.split(":")[0] for text in returned] == ["~zs", "~s", "~s", "~s"]


@on_every_database
def test_nothing_of_a_moved_or_changed_row_runs(using: str) -> None:
    driver = Driver(using)
    honest, moved, changed, raised, plain, more = enqueue_many(
        call(pay, "Ada", amount) for amount in range(6)
    )
    arguments = row(using, honest).get().arguments
    row(using, moved).update(task_path=refund.module_path)
    row(using, changed).update(arguments=arguments.replace("Ada", "Eve"))
    row(using, raised).update(arguments=row(using, more).get().arguments, max_attempts=9)
    row(using, plain).update(arguments='{"args":["Eve"],"kwargs":{}}')

    driver.work()

    assert RAN == [("Ada", 0), ("Ada", 5)]
    results = [result_of(each) for each in (moved, changed, raised, plain)]
    assert list(map(error_of, results)) == [SIGNATURE_ERROR] * 3 + [UNSIGNED_ERROR]
    assert [(each.args, each.kwargs) for each in results] == [([], {})] * 4


@on_every_database
def test_what_decides_where_and_how_a_job_runs_is_signed(using: str) -> None:
    driver = Driver(using)
    limited = pay_alone.enqueue("Ben")
    queued, ranked = pay.enqueue("Ada"), pay.enqueue("Ada")
    row(using, limited).update(concurrency_key="another")
    # The copies in the row of the execution are what a worker goes by.
    from steady_queue_core.models import ReadyExecution

    ready = ReadyExecution.objects.using(using)
    ready.filter(pk=int(queued.id)).update(queue_name="other")
    ready.filter(pk=int(ranked.id)).update(rank=F("rank") - 7)
    driver.work()
    assert RAN == []
    assert [error_of(result_of(each)) for each in (limited, queued, ranked)] == [
        SIGNATURE_ERROR
    ] * 3


@on_every_database
def test_a_changed_result_is_not_returned(using: str) -> None:
    driver = Driver(using)
    first, second, third = enqueue_many(call(pay, name) for name in ("Ada", "Ben", "Cyd"))
    driver.work()
    row(using, first).update(return_value=row(using, second).get().return_value)
    row(using, third).update(return_value='"Eve"')
    for each, error in ((first, "PayloadSignatureError"), (third, "UnsignedPayloadError")):
        each.refresh()
        assert each.status is TaskResultStatus.SUCCESSFUL
        with pytest.raises(Exception, match=r"The (signature of the )?stored result") as caught:
            each.return_value  # noqa: B018  (Reading it raises.)
        assert type(caught.value).__name__ == error
    # A row cannot name itself a backend that does not sign.
    row(using, third).update(backend_name="gone")
    third.refresh()
    with pytest.raises(Exception, match="The stored result has no signature"):
        third.return_value  # noqa: B018  (Reading it raises.)


@on_every_database
def test_attempts_and_retries_read_the_same_arguments(using: str) -> None:
    driver = Driver(using)
    result = fails.enqueue("Ada")
    driver.finish(result)
    assert RAN == ["Ada"] * 3
    assert [each.exception_class_path for each in result.errors] == ["builtins.LookupError"] * 3
    assert row(using, result).retry_failed() == 1
    driver.finish(result)
    assert RAN == ["Ada"] * 6


@on_every_database
def test_the_arguments_of_a_cancelled_job_can_be_read(using: str) -> None:
    driver = Driver(using)
    result = pay.enqueue("Ada")
    [claim] = driver.claim()
    assert result.cancel()
    assert row(using, result).get().is_cancelled
    assert result_of(result).args == ["Ada"]
    driver.settle(driver.run(claim))
    result.refresh()
    assert result.return_value == "Ada"


@pytest.mark.django_db(databases=["default"], transaction=True)
@pytest.mark.parametrize("using", ["default"])
def test_instances_of_models_are_fetched_once_they_are_verified(using: str) -> None:
    driver = Driver(using)
    ada, ben = (Item.objects.create(name=name) for name in ("Ada", "Ben"))
    good, forged = rename.enqueue(ada), rename.enqueue(ada)
    stored = row(using, forged).get().arguments
    row(using, forged).update(arguments=stored.replace(f"{ada.pk}]", f"{ben.pk}]"))
    assert row(using, forged).get().arguments != stored
    driver.work()
    assert RAN == ["Ada"]
    assert error_of(rename.get_result(forged.id)) == SIGNATURE_ERROR
    good.refresh()
    assert good.return_value == "Ada"


@on_every_database
def test_a_result_is_found_in_the_journal_as_it_is_stored(using: str) -> None:
    driver = Driver(using)
    result = pay.enqueue("Ada")
    [claim] = driver.claim()
    done = driver.run(claim)
    entry = FinishedEntry.read(FinishedEntry.of(done.outcome))
    backend: Any = task_backends["default"]
    attempt = Attempt(claim, driver.executor.task_of(claim), backend, "x", claim.claimed_at)
    journaled = attempt.journaled(entry)
    assert journaled.task_result is not None
    assert journaled.task_result.return_value == "Ada"
    driver.settle(journaled)
    result.refresh()
    assert result.return_value == "Ada"


@on_every_database
def test_the_testing_kit_reads_what_was_sealed(using: str) -> None:
    pay.enqueue("Ada", amount=3)
    [result] = run_enqueued_tasks()
    assert result.return_value == "Ada"
    pay.enqueue("Ben")
    Job.objects.using(using).filter(finished_at=None).update(arguments="{}")
    with pytest.raises(Exception, match="The stored call has no signature"):
        run_enqueued_tasks()


@on_every_database
def test_rows_from_before_can_be_read_while_payloads_need_not_be_signed(
    using: str, settings: Any
) -> None:
    driver = Driver(using)
    settings.TASKS = tasks(using)
    old = pay.enqueue("Ada")
    settings.TASKS = tasks(using, payload=SIGNED)
    new = pay.enqueue("Ben")
    settings.TASKS = tasks(using, payload={})
    driver.executor.backend_of.cache_clear()
    driver.work()
    assert RAN == [("Ada", 1), ("Ben", 1)]
    for each in (old, new):
        each.refresh()
    assert (old.return_value, new.return_value) == ("Ada", "Ben")
    # Without the option, an envelope is text that is no JSON.
    settings.TASKS = tasks(using, payload=SIGNED)
    third = pay.enqueue("Cyd")
    settings.TASKS = tasks(using)
    driver.executor.backend_of.cache_clear()
    driver.work()
    assert error_of(pay.get_result(third.id)) == (
        "steady_queue_core.arguments.errors.DeserializationError"
    )


@on_every_database
def test_encrypted_rows_tell_nothing(using: str, settings: Any) -> None:
    if not encryption.is_available():
        pytest.skip("cryptography is not installed")
    settings.TASKS = tasks(using, payload={"sign": True, "encrypt": True})
    driver = Driver(using)
    [result] = enqueue_many([call(pay, "Ada")])
    driver.finish(result)
    assert result.return_value == "Ada"
    job = row(using, result).get()
    for text in (job.arguments, job.return_value):
        assert text.startswith("~es:")
        assert "Ada" not in text


# --- recurring tasks ------------------------------------------------------------------------------


@on_every_database
def test_a_recurring_task_that_a_stranger_adds_or_changes_is_not_enqueued(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("pay", pay, schedule="0 12 * * *", args=["Ada"])
    backend: Any = task_backends["default"]
    good = found.row("pay")
    assert good.arguments.startswith("~s:")
    assert backend.enqueue_recurring(good).args == ["Ada"]
    changes = {
        "key": "mine",
        "task_path": refund.module_path,
        "queue_name": "other",
        "priority": 9,
        "schedule": "* * * * * *",
        "timezone": "Asia/Tokyo",
        "catch_up": "last",
        "starts_at": portable.storable(found.present()),
        "ends_at": portable.storable(found.present()),
        "repeats": 2,
        "overlap": "queue",
        "arguments": '{"args":["Eve"],"kwargs":{}}',
    }
    for name, value in changes.items():
        forged = found.row("pay")
        setattr(forged, name, value)
        with pytest.raises(UnusableRecurringTaskError) as caught:
            backend.enqueue_recurring(forged)
        assert isinstance(caught.value.__cause__, PayloadSignatureError) or name == "arguments"
    assert len(found.jobs()) == 1


@on_every_database
def test_a_recurring_task_is_signed_anew_when_it_is_changed(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("pay", pay, schedule="0 12 * * *", args=["Ada"])
    change_recurring_task("pay", schedule="0 13 * * *", priority=3)
    change_recurring_task("pay", queue_name="late")
    change_recurring_task("pay", args=["Ben"])
    backend: Any = task_backends["default"]
    result = backend.enqueue_recurring(found.row("pay"))
    assert (result.args, result.task.priority, result.task.queue_name) == (["Ben"], 3, "late")
    # What was forged is not signed for the forger.
    found.tasks.update(queue_name="other")
    with pytest.raises(UnusableRecurringTaskError, match="The signature of the stored recurring"):
        change_recurring_task("pay", priority=4)


@on_every_database
def test_limits_are_signed_and_rows_without_any_as_they_were_before(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("pay", pay, schedule="0 12 * * * UTC", args=["Ada"])
    row, backend = found.row("pay"), pay.backend
    before = (
        "recurring",
        "pay",
        pay.module_path,
        backend,
        "default",
        0,
        "0 12 * * *",
        "UTC",
        "skip",
    )
    assert recurring_scope(row) == before
    later = found.present() + timedelta(days=1, microseconds=7)
    change_recurring_task("pay", starts_at=later, repeats=3, overlap="skip")
    row = found.row("pay")
    assert recurring_scope(row) == (*before, later.isoformat(), None, 3, "skip")
    task_backends["default"].enqueue_recurring(row)
    for forged in ({"starts_at": None}, {"repeats": None}, {"repeats": 4}, {"overlap": "allow"}):
        changed = found.row("pay")
        for name, value in forged.items():
            setattr(changed, name, value)
        with pytest.raises(UnusableRecurringTaskError, match="The signature of the stored"):
            task_backends["default"].enqueue_recurring(changed)


@on_every_database
def test_recurring_tasks_in_code_are_mirrored_as_they_are_stored(using: str) -> None:
    recurring(key="daily", schedule="0 12 * * *", args=["Ada"])(pay)
    found = Recurrence(using)
    for _ in range(2):
        mirror(found.connection, found.dialect)
    [stored] = found.tasks.all()
    assert stored.arguments.startswith("~s:")
    backend: Any = task_backends["default"]
    backend.enqueue_recurring(stored)
    [job] = found.jobs()
    assert job.arguments.endswith(':{"args":["Ada"],"kwargs":{}}')
