"""Records that nobody reads are not made; whoever may read them gets them."""

from __future__ import annotations

import logging
from functools import wraps
from typing import Any

import pytest
from django.utils.log import RequireDebugFalse, RequireDebugTrue

from steady_queue_core.compat import framework_signals, task_finished, task_started
from steady_queue_core.log_readers import is_read
from steady_queue_core.tasks.task_signals import Audience

INFO = logging.INFO


@pytest.fixture
def logger() -> logging.Logger:
    """A logger below one that logs from INFO on. Unregistered: pytest adds handlers to others."""
    child = logging.Logger("child")
    child.parent = logging.Logger("parent", INFO)
    return child


def handler(level: int = logging.NOTSET, *filters: Any) -> logging.Handler:
    made = logging.StreamHandler()
    made.setLevel(level)
    for each in filters:
        made.addFilter(each)
    return made


def parent_of(logger: logging.Logger) -> logging.Logger:
    assert logger.parent is not None
    return logger.parent


def test_nobody_reads_where_no_handler_is_but_the_last_resort(logger: logging.Logger) -> None:
    assert not is_read(logger, INFO)
    assert is_read(logger, logging.WARNING)


def test_a_handler_reads_from_its_level_on(logger: logging.Logger) -> None:
    parent_of(logger).addHandler(handler(logging.ERROR))
    assert not is_read(logger, INFO)
    assert not is_read(logger, logging.WARNING)  # The last resort is not asked then.
    assert is_read(logger, logging.ERROR)


def test_a_logger_lets_pass_what_its_level_allows(logger: logging.Logger) -> None:
    parent_of(logger).addHandler(handler())
    assert is_read(logger, INFO)
    assert not is_read(logger, logging.DEBUG)
    logger.propagate = False
    assert not is_read(logger, INFO)


@pytest.mark.parametrize(
    ("filters", "debug", "read"),
    [
        ([RequireDebugTrue()], False, False),
        ([RequireDebugTrue()], True, True),
        ([RequireDebugFalse()], False, True),
        ([RequireDebugFalse()], True, False),
        ([logging.Filter("elsewhere")], False, True),
        ([lambda record: False], False, True),
    ],
)
def test_only_filters_of_django_are_known_to_drop_all(
    logger: logging.Logger, settings: Any, filters: list[Any], debug: bool, read: bool
) -> None:
    settings.DEBUG = debug
    parent_of(logger).addHandler(handler(INFO, *filters))
    assert is_read(logger, INFO) is read


def test_a_filter_of_a_logger_may_be_a_reader(logger: logging.Logger) -> None:
    parent_of(logger).addHandler(logging.NullHandler())
    assert not is_read(logger, INFO)
    logger.addFilter(lambda record: False)
    assert is_read(logger, INFO)


@pytest.mark.parametrize("method", ["info", "_log", "makeRecord", "handle", "callHandlers"])
def test_who_has_replaced_a_method_of_loggers_may_be_a_reader(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """As error trackers do; wrapped, so that it has the name of what it replaces."""
    original = getattr(logging.Logger, method)

    @wraps(original)
    def watch(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    monkeypatch.setattr(logging.Logger, method, watch)
    assert is_read(logger, INFO)
    monkeypatch.setattr(logging.Logger, method, Proxy(original))
    assert is_read(logger, INFO)


class Proxy:
    """Equal to what it wraps, and with all attributes of it."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.wrapped == other)

    def __hash__(self) -> int:
        return hash(self.wrapped)


def test_a_signal_is_heard_by_who_receives_it_or_reads_the_records_of_it(
    monkeypatch: pytest.MonkeyPatch, logger: logging.Logger
) -> None:
    monkeypatch.setattr(framework_signals, "logger", logger)
    assert not Audience().hears(task_started)

    def receiver(**kwargs: Any) -> None: ...

    task_started.connect(receiver)
    try:
        assert Audience().hears(task_started)
    finally:
        task_started.disconnect(receiver)
    assert not Audience().hears(task_started)
    parent_of(logger).addHandler(handler())
    assert Audience().hears(task_started)


def test_another_receiver_instead_of_the_framework_is_heard(
    monkeypatch: pytest.MonkeyPatch, logger: logging.Logger
) -> None:
    monkeypatch.setattr(framework_signals, "logger", logger)

    def receiver(**kwargs: Any) -> None: ...

    assert task_started.disconnect(framework_signals.log_task_started)
    try:
        assert not Audience().hears(task_started)
        task_started.connect(receiver)
        assert Audience().hears(task_started)
    finally:
        task_started.disconnect(receiver)
        task_started.connect(framework_signals.log_task_started)


def test_a_receiver_is_noticed_at_once_and_a_reader_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch, logger: logging.Logger
) -> None:
    monkeypatch.setattr(framework_signals, "logger", logger)
    audience = Audience()
    assert not audience.hears(task_finished)

    def receiver(**kwargs: Any) -> None: ...

    task_finished.connect(receiver)
    try:
        assert audience.hears(task_finished)
    finally:
        task_finished.disconnect(receiver)
    parent_of(logger).addHandler(handler())
    assert not audience.hears(task_finished)
    audience.look_again()
    assert audience.hears(task_finished)
