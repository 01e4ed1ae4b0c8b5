"""What log records say beside their message, and the lines that are made of them."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

import steady_queue_core
from steady_queue_core import task
from steady_queue_core.logging import (
    JSONFormatter,
    TaskContextFilter,
    get_logger,
    logging_to_stderr,
)
from steady_queue_core.retries import constant

from .driver import Driver
from .samples import FRAMEWORK, breaks, echo, real_transactions

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


def test_json_is_one_line_with_all_that_was_given() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    own_list: list[Any] = [1]
    own_list.append(own_list)
    record = logging.makeLogRecord(
        {
            "name": "steady_queue.worker", "levelname": "INFO", "msg": "two\nlines of %s",
            "args": ("text",), "event": "task.finished", "wait_ms": 1.5, "task": None,
            "created": 0.25, "process": 7, "list": [1, {"a": None}], "dict": {"b": [True]},
            "decimal": Decimal("1.50"), "date": date(2026, 1, 2), "odd": Odd(),
            "instant": datetime(2026, 1, 2, tzinfo=UTC), "inner": [Decimal("2.5")], "bytes": b"x",
            "keys": {(1, 2): 3}, "nan": float("nan"), "endless": own_list,
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
        "task": None, "list": [1, {"a": None}], "dict": {"b": [True]}, "decimal": "1.50",
        "date": "2026-01-02", "instant": "2026-01-02T00:00:00+00:00", "inner": ["2.5"],
        "bytes": "b'x'", "keys": "{(1, 2): 3}", "nan": "nan", "endless": "[1, [...]]",
        "odd": f"<{Odd.__qualname__}>",
    }  # fmt: skip


#: What a task may raise, or a row may name.
HOSTILE = "x\n2026-11-22 00:00:00,000 CRITICAL 1 forged\r\x1b[2J\u202e\x9b\u2028end"
SHOWN = "x\\n2026-11-22 00:00:00,000 CRITICAL 1 forged\\r\\x1b[2J\\u202e\\x9b\\u2028end"


def test_a_message_is_one_line_whatever_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    logger = get_logger("steady_queue.worker")
    with logging_to_stderr("text"):
        logger.error("%s and %s", HOSTILE, ValueError(HOSTILE), extra={"event": "task.broken"})
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith(f" {SHOWN} and {SHOWN}")


@pytest.mark.parametrize("name", ["steady_queue.worker", "django.tasks"])
def test_no_line_of_a_traceback_passes_for_a_record(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    ours = name.startswith("steady_queue")
    logger: Any = get_logger(name) if ours else logging.getLogger(name)
    with logging_to_stderr("text"):
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            logger.exception("failed", extra={"event": "task.broken"})
    first, *others = capsys.readouterr().err.rstrip("\n").split("\n")
    assert first.endswith(" failed")
    assert len(others) > 3
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def test_other_formatters_get_the_lines_of_our_tracebacks_as_safe(kept: Kept) -> None:
    logger = get_logger("steady_queue.worker")
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        logger.error("%s", HOSTILE, exc_info=error, extra={"event": "x", "task": HOSTILE})
    [record] = kept.records
    text = logging.Formatter("%(task)s %(message)s").format(record)
    first, *others = text.split("\n")
    assert first == f"{SHOWN} {SHOWN}"
    assert all(line.startswith("    ") and line.isprintable() for line in others)
    assert record.exc_info[0] is ValueError


def test_a_record_names_the_line_that_made_it(kept: Kept) -> None:
    logger = get_logger("steady_queue.worker")
    logger.warning("here", extra={"event": "x"})
    logger.log(logging.WARNING, "here, too", extra={"event": "x"})
    assert [record.filename for record in kept.records] == ["test_logging.py"] * 2
    assert {record.funcName for record in kept.records} == {
        "test_a_record_names_the_line_that_made_it"
    }


class Broken(logging.Handler):
    """Raises, as a handler may, and as the standard ones do when the standard error is closed."""

    def emit(self, record: logging.LogRecord) -> None:
        raise ValueError("I/O operation on closed file")


@real_transactions
@pytest.mark.parametrize("kind", [echo, breaks, fails_once])
def test_a_handler_that_raises_changes_no_outcome(kind: Any) -> None:
    broken = Broken()
    names = ("steady_queue", "steady_queue.task", "django.tasks", "django_tasks", "django.dispatch")
    loggers = [logging.getLogger(name) for name in names]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(broken)
        each.setLevel(logging.DEBUG)
    try:
        result = kind.enqueue() if kind is breaks else kind.enqueue("1")
        driver = Driver()
        driver.work()
        driver.work()
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.removeHandler(broken)
            each.setLevel(level)
    result.refresh()
    assert result.status == ("SUCCESSFUL" if kind is echo else "FAILED")
    assert len(result.errors) == {echo: 0, breaks: 1, fails_once: 2}[kind]


def test_the_queue_logs_by_its_own_loggers_alone() -> None:
    packages = Path(steady_queue_core.__file__).parent.parent.parent
    careless = [
        path.name
        for path in packages.glob("steady_queue_*/steady_queue_*/**/*.py")
        if 'logging.getLogger("steady_queue' in path.read_text()
    ]
    assert careless == []


@real_transactions
def test_all_lines_of_a_task_carry_its_id(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    framework = logging.getLogger(FRAMEWORK)
    framework.addHandler(kept)
    caplog.set_level(logging.INFO, FRAMEWORK)
    try:
        result = breaks.enqueue()
        Driver().work()
    finally:
        framework.removeHandler(kept)
    theirs = [record for record in kept.records if record.name == FRAMEWORK]
    assert {record.levelno for record in theirs} == {logging.INFO, logging.ERROR}
    for record in theirs:
        assert (record.task, record.task_id) == (result.task.module_path, result.id)
        assert record.attempt == 1


def test_the_standard_error_gets_the_queue_alone_and_leaves_all_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = get_logger("steady_queue.worker")
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
