"""What the SQLite dialect says of a database that is not fit for a queue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from steady_queue_sqlite import checks


def ids(name: object, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    monkeypatch.setitem(connection.settings_dict, "NAME", name)
    return [message.id for message in checks.run(connection)]


@pytest.mark.parametrize("name", [":memory:", "file:mine?mode=memory&cache=shared"])
def test_a_database_in_memory_is_warned_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids(name, monkeypatch) == ["steady_queue.W101"]


def test_the_one_that_takes_its_place_in_tests_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "TEST", {"NAME": None})
    name = connection.creation._get_test_db_name()
    assert connection.creation.is_in_memory_db(name)
    assert ids(name, monkeypatch) == []


def test_a_folder_that_cannot_be_written_to_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ids(tmp_path / "db.sqlite3", monkeypatch) == []

    def refuse(path: Any, mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)
    assert ids(tmp_path / "db.sqlite3", monkeypatch) == ["steady_queue.W102"]


def test_a_zone_of_the_database_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "TIME_ZONE", "Asia/Tokyo")
    assert ids(tmp_path / "db.sqlite3", monkeypatch) == ["steady_queue.E103"]
    monkeypatch.setitem(connection.settings_dict, "TIME_ZONE", "UTC")
    assert ids(tmp_path / "db.sqlite3", monkeypatch) == []
