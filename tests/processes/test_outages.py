"""What counts as an outage, and what is said of it."""

from __future__ import annotations

import logging
from typing import Any
from unittest import mock

import pytest
from django.db import InternalError, OperationalError, ProgrammingError
from django.dispatch import Signal

from steady_queue_core.processes.base import connection_setup, database, outage
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable
from steady_queue_core.processes.base.outage import MAX_CONFLICTS, MAX_PAUSE, REFUSAL_GRACE


class Dialect:
    """Knows what the tests raise."""

    def is_contention(self, connection: Any, error: BaseException) -> bool:
        return "locked" in str(error)

    def is_lost_connection(self, connection: Any, error: BaseException) -> bool:
        return "lost" in str(error)

    def was_replaced(self, connection: Any) -> str | None:
        return None


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (database, outage):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def queue_database(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> QueueDatabase:
    monkeypatch.setattr(database, "dialect_for", lambda using: Dialect())
    monkeypatch.setattr(database, "connections", {"default": mock.Mock(connection=None)})
    caplog.set_level(logging.INFO, "steady_queue.database")
    return QueueDatabase("default")


def fail(queue_database: QueueDatabase, error: Exception) -> Unavailable:
    with pytest.raises(Unavailable) as raised:
        queue_database.run(mock.Mock(side_effect=error))
    return raised.value


def succeed(queue_database: QueueDatabase) -> None:
    queue_database.run(lambda connection, dialect: None)


def test_a_refusal_is_not_ended_by_what_is_allowed(
    queue_database: QueueDatabase, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as heartbeats, where the privilege for claims is missing."""
    pauses = []
    for _ in range(30):
        pauses.append(fail(queue_database, ProgrammingError("permission denied")).pause)
        succeed(queue_database)
        clock.now += pauses[-1]
        succeed(queue_database)
    assert [record.message for record in caplog.records] == [
        "Database 'default' is unavailable: permission denied"
    ]
    assert min(pauses[-5:]) > 2
    clock.now += MAX_PAUSE + REFUSAL_GRACE
    succeed(queue_database)
    assert "available again" in caplog.records[-1].message
    assert fail(queue_database, ProgrammingError("permission denied")).pause < 0.2


def test_a_refusal_ends_when_what_was_refused_succeeds(
    queue_database: QueueDatabase, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """On a server that only reads, such as a standby: whatever reads may go on meanwhile."""
    refusing = True

    def write(connection: Any, dialect: Any) -> None:
        if refusing:
            raise InternalError("cannot execute UPDATE in a read-only transaction")

    pauses = []
    for _ in range(20):
        with pytest.raises(Unavailable) as raised:
            queue_database.run(write)
        pauses.append(raised.value.pause)
        for _ in range(10):
            clock.now += (raised.value.pause + 3) / 10
            succeed(queue_database)
    assert len(caplog.records) == 1
    assert min(pauses[-5:]) > 2
    refusing = False
    queue_database.run(write)
    assert "available again" in caplog.records[-1].message


def test_an_outage_ends_with_the_first_answer(
    queue_database: QueueDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10):
        assert fail(queue_database, OperationalError("lost")).lost
    succeed(queue_database)
    assert len(caplog.records) == 2


def test_locks_that_last_are_told_and_short_ones_are_not(
    queue_database: QueueDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(MAX_CONFLICTS):
        assert not fail(queue_database, OperationalError("locked")).lost
    succeed(queue_database)
    assert caplog.records == []
    for _ in range(MAX_CONFLICTS * 3):
        fail(queue_database, OperationalError("locked"))
    succeed(queue_database)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "Database 'default' is unavailable", "Database 'default' is available again after 0.0 s"
    ]  # fmt: skip


def test_a_connection_that_was_ended_while_idle_is_no_outage(
    queue_database: QueueDatabase, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    wrapper: Any = queue_database.connection
    wrapper.connection = "a session"
    wrapper.is_usable.return_value = False
    succeed(queue_database)
    assert not wrapper.close.called
    clock.now += 30
    succeed(queue_database)
    assert wrapper.close.called
    assert caplog.records == []


def test_rests_after_which_a_connection_is_tested_are_as_short_as_the_server_wants(
    queue_database: QueueDatabase, clock: Clock
) -> None:
    wrapper: Any = queue_database.connection
    wrapper.connection = "a session"
    clock.now += 2
    fail(queue_database, OperationalError("lost"))
    tested = []
    for rest in (0.9, 1.1, 1.1, 1.2):  # It lasts for 1.1 s, as is seen then.
        clock.now += rest
        wrapper.is_usable.reset_mock()
        succeed(queue_database)
        tested.append(wrapper.is_usable.called)
    assert tested == [False, True, False, True]


def test_a_connection_that_is_replaced_at_once_is_no_outage(
    queue_database: QueueDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """However often, as long as the operation succeeds in between."""
    wrapper: Any = queue_database.connection
    for number in range(1, 4):
        wrapper.connection = "a session"
        unavailable = fail(queue_database, OperationalError("lost"))
        assert (unavailable.pause, unavailable.lost) == (0.0, True)
        assert (wrapper.ensure_connection.call_count, queue_database.outages) == (number, number)
        queue_database.run(mock.Mock())
    assert caplog.records == []


def test_an_outage_begins_when_a_lost_connection_is_not_replaced(
    queue_database: QueueDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    wrapper: Any = queue_database.connection
    wrapper.connection = "a session"
    wrapper.ensure_connection.side_effect = OperationalError("refused")
    assert fail(queue_database, OperationalError("lost")).pause > 0
    assert [record.message for record in caplog.records] == [
        "Database 'default' is unavailable: lost"
    ]


def test_an_operation_that_loses_each_connection_is_told(
    queue_database: QueueDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """Although others succeed."""
    wrapper: Any = queue_database.connection
    wrapper.connection = "a session"
    assert fail(queue_database, OperationalError("lost")).pause == 0
    queue_database.run(_look)
    assert fail(queue_database, OperationalError("lost")).pause > 0
    assert [record.message for record in caplog.records] == [
        "Database 'default' is unavailable: lost"
    ]


def _look(connection: Any, dialect: Any) -> None:
    """Another operation than the lambdas and mocks of the tests."""


def test_a_connection_whose_preparation_failed_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialect, wrapper = mock.Mock(), mock.Mock(alias="default", connection=None)
    dialect.prepare.side_effect = OperationalError("canceled")
    monkeypatch.setattr(connection_setup, "dialect_for", lambda using: dialect)
    connections = mock.MagicMock()
    connections.__getitem__.return_value = wrapper
    monkeypatch.setattr(connection_setup, "connections", connections)
    monkeypatch.setattr(connection_setup, "connection_created", Signal())
    with connection_setup.preparing_connections("default", mock.Mock()):
        with pytest.raises(OperationalError):
            connection_setup.connection_created.send(sender=type(wrapper), connection=wrapper)
        assert wrapper.close.called


def test_an_outage_is_told_of_with_its_first_reasons(
    queue_database: QueueDatabase, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = ["connection lost", "full", "connection lost", "full", "starting", "one more", "full"]
    for reason in reasons:
        fail(queue_database, OperationalError(reason))
    assert [record.message for record in caplog.records] == [
        "Database 'default' is unavailable: connection lost",
        "Database 'default' is still unavailable: full",
        "Database 'default' is still unavailable: starting",
    ]
    clock.now += 60
    succeed(queue_database)
    caplog.clear()
    fail(queue_database, OperationalError("full"))
    assert [record.message for record in caplog.records] == [
        "Database 'default' is unavailable: full"
    ]
