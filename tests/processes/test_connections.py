"""Connections of the threads that run tasks: kept in good order, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, connections, transaction

from steady_queue_core.processes.connections import tidy_connections

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_connection_in_good_order_is_kept() -> None:
    connection.ensure_connection()
    kept = connection.connection
    tidy_connections()
    assert connection.connection is kept


@pytest.mark.parametrize(
    ("age", "wanted", "asked"), [(0, False, True), (60, False, False), (None, True, True)]
)
def test_a_kept_connection_is_asked_for_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, age: int | None, wanted: bool, asked: bool
) -> None:
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", wanted)
    connection.ensure_connection()
    tidy_connections()
    looks: list[Any] = []
    monkeypatch.setattr(connection, "is_usable", lambda: looks.append(1) or True)
    for _ in range(2):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    assert len(looks) == asked


def test_a_transaction_that_was_left_open_is_dropped() -> None:
    transaction.atomic().__enter__()
    left = connection.connection
    tidy_connections()
    assert not connection.in_atomic_block
    assert connection.connection is not left


@pytest.mark.parametrize("method", ["close", "get_autocommit", "is_usable"])
def test_a_connection_that_raises_is_dropped(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("broken")

    wrapper = connections["default"]
    wrapper.ensure_connection()
    left = wrapper.connection
    wrapper.errors_occurred = True
    if method == "close":
        monkeypatch.setattr(wrapper, "is_usable", lambda: False)
    monkeypatch.setattr(wrapper, method, fail)
    tidy_connections()
    assert connection.connection is not left
