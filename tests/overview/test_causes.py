"""What has failed lately, by its cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core.admin.overview_tables import counted
from steady_queue_core.models import FailedExecution
from steady_queue_core.overview import Scope, causes
from steady_queue_core.overview.causes import Causes

from ..admin.test_error_groups import TASK, fail
from ..models.everywhere import on_every_database
from .planting import Garden


def look(using: str, **given: Any) -> Causes:
    """Look by one query."""
    with CaptureQueriesContext(connections[using]) as captured:
        found = causes.causes(Scope(using, **given))
    assert len(captured) == 1
    return found


def messages(found: Causes) -> list[tuple[str, str]]:
    """Return the last message of each group, and how many there are."""
    return [(each.group.message, each.group.count.text) for each in found.shown]


@on_every_database
def test_the_largest_groups_come_first(using: str, garden: Garden) -> None:
    for number in range(7):
        for _ in range(1 + (number == 3)):
            fail(garden, f"cause {'abcdefg'[number]}", queue=f"queue{number}")
    found = look(using)
    letters = ("d", "g", "f", "e", "c")
    assert messages(found) == [(f"cause {each}", "2" if each == "d" else "1") for each in letters]
    assert found.has_more
    assert found.since is None
    [first, *_] = found.shown
    assert first.group.task_path == TASK
    assert first.group.error == "ValueError: cause d"
    assert list(first.failed_at) == sorted(first.failed_at, reverse=True)
    assert first.group.first == first.failed_at[-1]
    away = abs(first.group.last - garden.present(using))
    assert away < timedelta(minutes=1)


@on_every_database
def test_those_of_the_scope_count_alone(using: str, garden: Garden) -> None:
    fail(garden, "one"), fail(garden, "two", queue="other"), fail(garden, "three", task="a.b")
    assert messages(look(using, queue="other")) == [("two", "1")]
    assert messages(look(using, task="a.b")) == [("three", "1")]
    assert messages(look(using, task="a.b", queue="other")) == []


@on_every_database
def test_more_failures_than_are_looked_at_are_told(
    using: str, garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        fail(garden, f"order {number}")
    monkeypatch.setattr(causes, "LOOKED_AT", 3)
    found = look(using)
    assert messages(found) == [("order 3", "3+")]
    assert found.since == found.shown[0].failed_at[-1]
    monkeypatch.setattr(causes, "LOOKED_AT", 4)
    assert messages(look(using)) == [("order 3", "4")]


@pytest.mark.django_db(transaction=True)
def test_damaged_rows_hide_no_others(garden: Garden) -> None:
    fail(garden, "one"), fail(garden, "one"), fail(garden, "two")
    [job, *_] = garden.ids(FailedExecution)
    for damage in ("CAST(x'ff' AS TEXT)", "x'ff'", "17"):
        for column in ("message", "exception_class"):
            with garden.connection.cursor() as cursor:
                cursor.execute(
                    f"UPDATE steady_queue_failed_executions SET {column} = {damage} "
                    "WHERE job_id = %s", [job],
                )  # fmt: skip
            assert messages(causes.causes(Scope("default"))) == [("one", "2"), ("two", "1")]


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [([0, 9, 10, 39, 40], [2, 1, 0, 2]), ([-1, 41], [0] * 4), ([], [0] * 4)],
)
def test_times_are_counted_by_steps(seconds: Sequence[int], expected: list[int]) -> None:
    times = [MOMENT + timedelta(seconds=each) for each in seconds]
    assert counted(times, MOMENT, MOMENT + timedelta(seconds=40), 4) == expected
    assert counted(times, MOMENT, MOMENT, 4) == [0] * 4
