"""Results: what a task's status, errors and times tell over its life."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import django
import pytest
from asgiref.sync import async_to_sync

from steady_queue_core import limits_concurrency, task
from steady_queue_core.compat import (
    Task,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
)
from steady_queue_core.errors import UnregisteredTaskError
from steady_queue_core.models import Job
from steady_queue_core.tasks.registry import known_task
from steady_queue_core.tasks.stand_ins import unregistered

from ..app.models import Item
from . import samples
from .driver import Driver
from .samples import (
    OURS,
    Recorder,
    backend,
    breaks,
    breaks_in_a_coroutine,
    configured,
    count_item,
    echo,
    nothing,
    own_context,
    real_transactions,
    stock,
    stock_coroutine,
    stubborn,
)

# --- results --------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    "result_id",
    [
        "", "0", "-1", "1.0", "1e3", " 1", "1 ", "+1", "1_0", "0x1", "one", "%", "1;", "\0", "\n1",
        "\N{ARABIC-INDIC DIGIT ONE}", "\N{SUPERSCRIPT TWO}", "\N{FULLWIDTH DIGIT ONE}",
        "9223372036854775807", "9223372036854775808", "1" * 20, "1" * 5000,
        None, 1, 1.5, b"1", True, [], "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    ],
    ids=lambda value: repr(value)[:24],
)  # fmt: skip
def test_an_id_of_no_result_is_unknown(result_id: Any) -> None:
    echo.enqueue()
    Job.objects.filter(pk=1).update(id=11)  # Nobody has the id 1.
    for read in (backend().get_result, echo.get_result):
        with pytest.raises(TaskResultDoesNotExist):
            read(result_id)
    for aread in (backend().aget_result, echo.aget_result):
        with pytest.raises(TaskResultDoesNotExist):
            async_to_sync(aread)(result_id)


@pytest.mark.django_db
def test_the_result_of_another_task_is_a_mismatch() -> None:
    result = echo.enqueue()
    with pytest.raises(TaskResultMismatch, match=f"received '{samples.__name__}.echo'"):
        nothing.get_result(result.id)
    with pytest.raises(TaskResultMismatch):
        async_to_sync(nothing.aget_result)(result.id)
    assert echo.using(queue_name="other").get_result(result.id) == result


@real_transactions
def test_the_life_of_a_task_that_succeeds(recorders: dict[str, Recorder]) -> None:
    driver = Driver()
    result = echo.enqueue(1, b=2)
    [claim] = driver.claim()
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    assert not result.is_finished
    assert result.worker_ids == [driver.name]
    assert result.attempts == 1
    assert result.started_at == result.last_attempted_at >= result.enqueued_at
    assert result.finished_at is None
    with pytest.raises(ValueError, match="has not finished"):
        result.return_value  # noqa: B018

    done = driver.run(claim)
    assert echo.get_result(result.id).status == TaskResultStatus.RUNNING
    driver.settle(done)
    async_to_sync(result.arefresh)()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == [[1], {"b": 2}]
    assert (result.attempts, result.worker_ids, result.errors) == (1, [driver.name], [])
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert echo.get_result(result.id) == result


@real_transactions
def test_a_return_value_of_none_is_one() -> None:
    result = Driver().finish(nothing.enqueue())
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value is None


@real_transactions
@pytest.mark.parametrize("failing", [breaks, breaks_in_a_coroutine])
def test_the_life_of_a_task_that_fails(failing: Task) -> None:
    driver = Driver()
    result = driver.finish(failing.enqueue())
    assert result.status == TaskResultStatus.FAILED
    assert result.is_finished
    assert result.started_at <= result.finished_at
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018
    [error] = result.errors
    assert error.exception_class_path == "builtins.LookupError"
    assert error.exception_class is LookupError
    assert error.traceback.startswith("Traceback (most recent call last):\n")
    assert error.traceback.endswith("LookupError: broken on purpose\n")
    assert f"in {failing.name}" in error.traceback
    assert (result.attempts, result.worker_ids) == (1, [driver.name])


@real_transactions
def test_a_task_that_waits_for_its_retry_is_ready_with_errors(
    recorders: dict[str, Recorder],
) -> None:
    driver = Driver()
    result = stubborn.enqueue(3)
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert [error.exception_class for error in result.errors] == [ValueError]
    assert (result.attempts, result.finished_at) == (1, None)
    assert not recorders["finished"].calls
    first_started_at = result.started_at

    driver.finish(result)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == f"in attempt 3 of {result.id}"
    assert (result.attempts, len(result.errors)) == (3, 2)
    assert result.worker_ids == [driver.name] * 3
    assert result.started_at == first_started_at < result.last_attempted_at
    assert len(recorders["started"].calls) == 3
    assert [call.status for call in recorders["finished"].calls] == [TaskResultStatus.SUCCESSFUL]


@real_transactions
def test_attempts_come_to_an_end(recorders: dict[str, Recorder]) -> None:
    result = Driver().finish(stubborn.enqueue(4))
    assert result.status == TaskResultStatus.FAILED
    assert (result.attempts, len(result.errors)) == (3, 3)
    assert "not in attempt 3" in result.errors[-1].traceback
    [finished] = recorders["finished"].calls
    assert len(finished.result.errors) == 3


@real_transactions
@pytest.mark.parametrize("backoff", [lambda *args: None, lambda *args: 1 / 0, lambda *args: -1])
def test_a_backoff_can_give_up(settings: Any, backoff: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"max_attempts": 3, "backoff": backoff}}}
    result = Driver().finish(breaks.enqueue())
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)


@real_transactions
def test_a_backoff_that_cannot_be_imported_any_more_gives_up(settings: Any) -> None:
    options = {"max_attempts": 3, "backoff": "tests.core.missing.backoff"}
    settings.TASKS = {"default": {**OURS, "OPTIONS": options}}
    result = Driver().finish(breaks.enqueue())
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert result.errors[0].exception_class is LookupError


@real_transactions
def test_the_backend_gives_the_attempts_that_a_task_does_not(settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"max_attempts": 2, "backoff": 0}}}
    driver = Driver()
    assert driver.finish(breaks.enqueue()).attempts == 2
    assert driver.finish(stubborn.enqueue(9)).attempts == 3


@real_transactions
def test_a_task_gets_its_context() -> None:
    result = Driver().finish(own_context.enqueue("Ada"))
    name, attempt, token, status, workers = result.return_value
    assert (name, attempt, status, workers) == ("Ada", 1, "RUNNING", 1)
    assert token >> 32 == 1  # The first claim of this job.


@real_transactions
def test_coroutines_and_stock_tasks_run() -> None:
    driver = Driver()
    results = [stock_coroutine.enqueue(1), stock.enqueue(1, b=5)]
    assert [driver.finish(result).return_value for result in results] == [2, 6]


@real_transactions
def test_model_instances_travel_by_primary_key() -> None:
    item = Item.objects.create(name="box")
    result = count_item.enqueue(item)
    item.name = "changed"
    item.save()
    Driver().finish(result)
    item.refresh_from_db()
    assert (item.name, item.count) == ("changed", 1)
    reference = result.return_value
    assert (reference.app_label, reference.model, reference.pk) == ("testapp", "item", item.pk)
    assert count_item.get_result(result.id).args == [reference]


@pytest.mark.django_db
def test_the_result_of_a_task_that_is_gone_can_be_read() -> None:
    result = echo.enqueue(1)
    Job.objects.update(task_path="no.longer.there")
    found = backend().get_result(result.id)
    assert (found.status, found.args) == (TaskResultStatus.READY, [1])
    assert (found.task.module_path, found.task.name) == ("no.longer.there", "there")
    assert found.task.queue_name == "default"
    with pytest.raises(UnregisteredTaskError, match=r"'no\.longer\.there' is not registered"):
        found.task.call()
    with pytest.raises(TaskResultMismatch):
        echo.get_result(result.id)


@pytest.mark.django_db
@pytest.mark.parametrize("damage", ["", "garbage", "{}", "[[1]]", "[1]", "null", "[" * 9999])
def test_a_damaged_row_can_be_read(damage: str) -> None:
    result = echo.enqueue(1)
    Job.objects.update(arguments=damage, errors=damage, worker_ids=damage, return_value=damage)
    found = backend().get_result(result.id)
    assert (found.args, found.kwargs, found.errors) == ([], {}, [])
    assert found.attempts == 0


@pytest.mark.django_db
def test_reading_a_result_imports_nothing() -> None:
    result = echo.enqueue()
    Job.objects.update(errors='[["antigravity.Error", "Traceback"]]')
    result.refresh()
    [error] = result.errors
    assert error.exception_class_path == "antigravity.Error"


@pytest.mark.django_db
def test_the_class_of_an_error_is_looked_up_and_not_imported() -> None:
    def class_of(path: str) -> Any:
        result = echo.enqueue()
        Job.objects.filter(pk=result.id).update(errors=json.dumps([[path, "Traceback"]]))
        [error] = echo.get_result(result.id).errors
        assert error.exception_class_path == path
        return error.exception_class

    assert class_of("builtins.ValueError") is ValueError
    assert class_of("django.core.exceptions.FieldError").__name__ == "FieldError"
    assert class_of(f"{__name__}.Outer.InnerError") is Outer.InnerError
    for path in ("this.s", "antigravity.Error", "no.such.Error", "", "x", "builtins.NoError"):
        with pytest.raises(ImportError, match="no module that this process has imported"):
            class_of(path)
    assert not {"this", "antigravity"} & {*sys.modules}
    for path in ("builtins.int", "os.path", "os.system", f"{__name__}.Outer"):
        with pytest.raises(ValueError, match="does not reference a valid exception"):
            class_of(path)


class Outer:
    class InnerError(Exception):
        pass


@real_transactions
def test_a_job_that_is_not_kept_leaves_no_result(settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"preserve_finished_jobs": False}}}
    driver = Driver()
    succeeded, failed = nothing.enqueue(), breaks.enqueue()
    driver.work()
    with pytest.raises(TaskResultDoesNotExist):
        succeeded.refresh()
    failed.refresh()
    assert failed.status == TaskResultStatus.FAILED


# --- pickles --------------------------------------------------------------------------------------


@limits_concurrency(key=lambda item: f"item/{item}", to=1)
@task(fair_key=lambda item: str(item))
def limited(item: int) -> None: ...


stock_pickles = pytest.mark.skipif(
    django.VERSION < (6, 1), reason="Django pickles its tasks since 6.1"
)


@pytest.mark.parametrize(
    "made",
    [
        echo,
        pytest.param(stock, marks=stock_pickles),
        pytest.param(stock_coroutine, marks=stock_pickles),
        limited,
        limited.using(priority=7, fair_key="mine"),
        configured.using(priority=3, run_after=timedelta(hours=1)),
        echo.using(run_after=datetime(2030, 1, 1, tzinfo=UTC)),
    ],
)
def test_tasks_can_be_pickled(made: Task) -> None:
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_pickle_can_be_read_by_processes_of_the_release_before() -> None:
    assert b"steady_queue_core.tasks.definition" in pickle.dumps(limited)
    assert b"copies" not in pickle.dumps(limited)


def test_a_pickle_takes_the_place_of_no_declared_task() -> None:
    of_former_code = pickle.dumps(echo.using(priority=5))
    declared = known_task(limited.module_path)
    assert pickle.loads(pickle.dumps(limited.using(priority=5))).priority == 5
    assert known_task(limited.module_path) is declared is limited
    gone = of_former_code.replace(b".echo", b".gone")
    with pytest.raises(ValueError, match="gone' to point to a Task instance"):
        pickle.loads(gone)


def test_a_copy_of_a_task_is_the_task() -> None:
    stand_in = unregistered("gone_shop.tasks.Error", "default")
    for made in (limited, echo.using(priority=5), stand_in):
        assert copy.copy(made) is copy.deepcopy(made) is made
    assert "gone_shop" not in sys.modules
    with pytest.raises(pickle.PicklingError, match="Error' is not declared"):
        pickle.dumps(stand_in)


def test_another_task_in_the_place_of_one_is_none_of_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What a renamed task is still called, for jobs that were enqueued before.
    monkeypatch.setattr(sys.modules[__name__], "old", limited, raising=False)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(unregistered(f"{__name__}.old", "default"))


@real_transactions
@pytest.mark.parametrize("made", [nothing, breaks])
def test_results_can_be_pickled(made: Task) -> None:
    result = made.enqueue()
    assert pickle.loads(pickle.dumps(result)) == result
    Driver().finish(result)
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    again.refresh()
    assert again.errors == result.errors
