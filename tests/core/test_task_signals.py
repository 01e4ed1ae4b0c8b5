"""Signals and logs of the task framework."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from steady_queue_core import task
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.compat import (
    Task,
    TaskResult,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from steady_queue_core.tasks.definition import SteadyQueueTask

from . import samples
from .driver import Driver
from .samples import (
    FRAMEWORK,
    OURS,
    Recorder,
    breaks,
    echo,
    nothing,
    plain,
    real_transactions,
    stock_coroutine,
)


@real_transactions
@pytest.mark.parametrize("failing", [False, True])
def test_signals_come_from_the_backend_class(recorders: dict[str, Recorder], failing: bool) -> None:
    driver = Driver()
    result = (breaks if failing else echo).enqueue()
    [enqueued] = recorders["enqueued"].calls
    driver.work()
    [started], [finished] = recorders["started"].calls, recorders["finished"].calls
    ending = TaskResultStatus.FAILED if failing else TaskResultStatus.SUCCESSFUL
    assert enqueued.status == TaskResultStatus.READY
    assert started.status == TaskResultStatus.RUNNING
    assert finished.status == ending
    for call in (enqueued, started, finished):
        assert call.sender is SteadyQueueBackend
        assert call.result.id == result.id
    assert enqueued.stored == started.stored == 1
    # The outcome is stored by the time that it is told.
    assert finished.stored == 0
    result.refresh()
    assert finished.result.worker_ids == started.result.worker_ids == result.worker_ids
    if failing:
        assert finished.result.errors == result.errors
    else:
        assert finished.result.return_value == result.return_value


@real_transactions
def test_a_subclass_sends_as_itself(settings: Any, recorders: dict[str, Recorder]) -> None:
    settings.TASKS = {"default": {**OURS, "BACKEND": f"{__name__}.CustomBackend"}}
    custom = task(plain)
    assert type(custom) is CustomTask
    custom.enqueue(1)
    Driver().work()
    for recorder in recorders.values():
        [call] = recorder.calls
        assert call.sender is CustomBackend


class CustomTask(SteadyQueueTask):
    __slots__ = ()


class CustomBackend(SteadyQueueBackend):
    task_class = CustomTask


@real_transactions
@pytest.mark.parametrize("problem", [ValueError("bad receiver"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("function", [echo, stock_coroutine], ids=lambda function: function.name)
def test_a_receiver_that_raises_changes_nothing(
    connect: Any, caplog: pytest.LogCaptureFixture, problem: BaseException, function: Task
) -> None:
    def receiver(**kwargs: Any) -> None:
        raise problem

    for signal in (task_enqueued, task_started, task_finished):
        connect(signal, receiver)
    result = Driver().finish(function.enqueue(1))
    assert result.status == TaskResultStatus.SUCCESSFUL
    raised = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.exc_info[1] for record in raised if record.exc_info] == [problem] * 3


@real_transactions
def test_a_receiver_can_be_a_coroutine_function(connect: Any) -> None:
    seen = []

    async def receiver(task_result: TaskResult, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        seen.append(task_result.status)

    for signal in (task_enqueued, task_started, task_finished):
        connect(signal, receiver)
    driver = Driver()
    driver.finish(echo.enqueue(1))
    driver.finish(stock_coroutine.enqueue(1))
    assert seen == ["READY", "RUNNING", "SUCCESSFUL"] * 2


@real_transactions
def test_each_step_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=FRAMEWORK)
    driver = Driver()
    result, failed = nothing.enqueue(), breaks.enqueue()
    driver.work()
    records = [record for record in caplog.records if record.name.startswith(FRAMEWORK)]
    lines = [(record.levelname, record.getMessage()) for record in records]
    name, path = f"Task id={result.id} path=", f"{samples.__name__}.nothing"
    assert ("DEBUG", f"{name}{path} enqueued backend=default") in lines
    assert ("INFO", f"{name}{path} state=RUNNING") in lines
    assert ("INFO", f"{name}{path} state=SUCCESSFUL") in lines
    [error] = [record for record in records if record.levelno >= logging.ERROR]
    assert error.getMessage() == f"Task id={failed.id} path={samples.__name__}.breaks state=FAILED"
    assert error.exc_info is not None
    assert isinstance(error.exc_info[1], LookupError)
    assert len(records) == 6
