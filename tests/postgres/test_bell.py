"""The bell: heard through outages, and rung without harm."""

from __future__ import annotations

import select
from contextlib import closing
from functools import partial
from unittest import mock

from django.db import OperationalError
from django.db.transaction import atomic

from steady_queue_postgres import bell as bells
from steady_queue_postgres import ring as ringing
from steady_queue_postgres.bell import Bell
from steady_queue_postgres.channel import CHANNEL

from .cases import PostgresTestCase

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query = %s AND datname = current_database()"


class TestBell(PostgresTestCase):
    def rings(self, bell: Bell, seconds: float | None = None) -> bool:
        patience = self.patience if seconds is None else seconds
        rung = bool(select.select([bell.fileno()], [], [], patience)[0])
        bell.clear()
        return rung

    def listeners(self) -> list[int]:
        return [pid for (pid,) in self.query(LISTENERS, [f"LISTEN {CHANNEL}"])]

    def test_the_bell_is_heard_again_after_its_connection_was_lost(self) -> None:
        with mock.patch.object(bells, "FIRST_PAUSE", 0.01), closing(Bell(self.connection)) as bell:
            assert self.rings(bell)
            [listener] = self.listeners()
            self.query("SELECT pg_terminate_backend(%s)", [listener])
            # It rings of itself: nobody knows what was missed.
            assert self.rings(bell)
            self.wait_until(lambda: len(self.listeners()) == 1, "the bell to listen again")
            assert self.listeners() != [listener]
            while self.rings(bell, 0.05):
                pass
            ringing._rung_at.clear()
            self.dialect.ring(self.connection, ["mail"])
            assert self.rings(bell)

    def test_a_bell_without_a_server_comes_when_there_is_one(self) -> None:
        """It does not keep its process waiting for long, nor from starting."""
        settings = self.connection.settings_dict
        with (
            mock.patch.object(bells, "PATIENCE", 0.05),
            mock.patch.object(bells, "LONGEST_PAUSE", 0.02),
        ):
            with mock.patch.dict(settings, {"PORT": "1"}):
                bell = Bell(self.connection)
            with closing(bell):
                assert not self.rings(bell, 0.1)
                bell._listener._wrapper.settings_dict["PORT"] = settings["PORT"]
                assert self.rings(bell)

    def test_a_closed_bell_leaves_no_connection(self) -> None:
        bell = Bell(self.connection)
        assert self.rings(bell)
        bell.close()
        self.wait_until(lambda: not self.listeners(), "the listener to be gone")


class TestRinging(PostgresTestCase):
    def setUp(self) -> None:
        super().setUp()
        ringing._rung_at.clear()

    def test_a_process_rings_once_for_a_burst(self) -> None:
        with mock.patch.object(ringing, "INTERVAL", 60.0), self.statements() as sent:
            for _ in range(20):
                self.dialect.ring(self.connection, ["mail"])
        assert len(sent) == 1
        assert "notify" in sent[0]

    def test_a_ring_that_fails_fails_nobody(self) -> None:
        """The job is stored: an error would have it enqueued again."""

        def fail(*context: object) -> None:
            raise OperationalError("the server is gone")

        with self.connection.execute_wrapper(fail):
            self.dialect.ring(self.connection, ["mail"])

    def test_a_ring_within_a_transaction_leaves_its_commit_durable(self) -> None:
        with atomic(using=self.using):
            self.dialect.ring(self.connection, ["mail"])
            assert self.query("SHOW synchronous_commit") == [("on",)]

    def test_enqueueing_itself_notifies_nobody(self) -> None:
        """Notifications in a transaction make the commits of the whole server wait in line."""
        with self.statements() as sent:
            partial(self.enqueue_many, 3)()
        assert not any("notify" in statement.lower() for statement in sent)
