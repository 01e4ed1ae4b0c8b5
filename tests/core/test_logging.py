"""What log records say beside their message, and the lines that are made of them."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from steady_queue_core import task
from steady_queue_core.logging import JSONFormatter, TaskContextFilter, logging_to_stderr
from steady_queue_core.retries import constant

from .driver import Driver
from .samples import breaks, echo, real_transactions

own = logging.getLogger("a.project")


@task
def tells(word: str) -> None:
    own.warning("doing %s", word)


@task
async def tells_apart(word: str) -> None:
    await asyncio.sleep(0.01)
    await sync_to_async(own.warning)("doing %s", word)


@task(max_attempts=2, backoff=constant(0))
def fails_once(secret: str) -> None:
    raise KeyError(secret)


class Kept(logging.Handler):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.addFilter(TaskContextFilter())
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, event: str) -> list[Any]:
        return [each for each in self.records if getattr(each, "event", "") == event]


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    loggers = [logging.getLogger("steady_queue"), own]
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)


@real_transactions
@pytest.mark.parametrize("kind", [tells, tells_apart])
def test_lines_of_the_project_know_their_task(kept: Kept, kind: Any) -> None:
    driver = Driver()
    results = [kind.enqueue(word) for word in ("one", "two", "three")]
    driver.work()
    own.warning("elsewhere")
    told = {each.getMessage(): (each.task, each.task_id, each.attempt) for each in kept.records}
    assert told["elsewhere"] == (None, None, None)
    path = results[0].task.module_path
    for word, result in zip(("one", "two", "three"), results, strict=True):
        assert told[f"doing {word}"] == (path, result.id, 1)


@real_transactions
def test_an_end_is_told_with_its_figures(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "steady_queue")
    driver = Driver()
    done, broken = echo.enqueue(1), breaks.enqueue()
    driver.work()
    [finished], [failed] = kept.of("task.finished"), kept.of("task.failed")
    for record, result in ((finished, done), (failed, broken)):
        assert record.task == result.task.module_path
        assert record.task_id == result.id
        assert (record.backend, record.queue, record.attempt) == ("default", "default", 1)
        assert 0 <= record.duration_ms < 60_000
        assert 0 <= record.wait_ms < 60_000
        assert record.levelno == logging.INFO
    assert (finished.status, finished.error_type) == ("finished", None)
    assert failed.status == "failed"
    assert failed.error_type.startswith("builtins.")
    assert {each.task_id for each in kept.of("task.started")} == {done.id, broken.id}


@real_transactions
def test_nothing_is_made_of_records_that_nobody_wants(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "steady_queue.task")
    echo.enqueue(1)
    Driver().work()
    assert kept.records == []


@real_transactions
def test_a_retry_is_told_and_arguments_are_not(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "steady_queue")
    result = fails_once.enqueue("top secret")
    driver = Driver()
    driver.work()
    driver.work()
    [retried], [failed] = kept.of("task.retried"), kept.of("task.failed")
    assert (retried.task_id, retried.attempt, retried.delay_ms) == (result.id, 1, 0)
    assert (failed.attempt, failed.error_type) == (2, "builtins.KeyError")
    assert "top secret" not in "".join(json.dumps(vars(each), default=str) for each in kept.records)


def test_json_is_one_line_with_what_is_plain() -> None:
    record = logging.makeLogRecord(
        {
            "name": "steady_queue.worker", "levelname": "INFO", "msg": "two\nlines of %s",
            "args": ("text",), "event": "task.finished", "wait_ms": 1.5, "task": None,
            "request": object(), "created": 0.25, "process": 7,
        }
    )  # fmt: skip
    try:
        raise ValueError("wrong")
    except ValueError:
        record.exc_info = sys.exc_info()
    line = JSONFormatter().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert "ValueError: wrong" in told.pop("exception")
    assert told == {
        "time": "1970-01-01T00:00:00.250+00:00", "level": "INFO", "logger": "steady_queue.worker",
        "message": "two\nlines of text", "pid": 7, "event": "task.finished", "wait_ms": 1.5,
    }  # fmt: skip


def test_the_standard_error_gets_the_queue_alone_and_leaves_all_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = logging.getLogger("steady_queue.worker")
    top = logging.getLogger("steady_queue")
    before = (top.handlers[:], top.level, top.propagate)
    with logging_to_stderr("json"):
        logger.info("done", extra={"event": "task.finished"})
        logger.debug("chatter")
        own.warning("not ours")
    logger.info("later")
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "task.finished"
    assert (top.handlers[:], top.level, top.propagate) == before
    with logging_to_stderr("text"):
        logger.info("done")
    assert capsys.readouterr().err.endswith(" done\n")
