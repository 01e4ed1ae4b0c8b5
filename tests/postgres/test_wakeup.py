"""Wake-ups: they survive outages, and sending them does no harm."""

from __future__ import annotations

import select
from contextlib import closing
from unittest import mock

from django.db import OperationalError
from django.db.transaction import atomic, rollback, set_autocommit

from steady_queue_core.conformance.base import new_job
from steady_queue_postgres import enqueue, wakeup
from steady_queue_postgres.wakeup import CHANNEL, Listener

from .cases import PostgresTestCase

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query = %s AND datname = current_database()"

#: Fails as NOTIFY does while too many notifications wait for a listener.
FULL = """
CREATE FUNCTION refuse_notification() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
END $$"""


class TestListener(PostgresTestCase):
    def is_woken(self, listener: Listener, seconds: float | None = None) -> bool:
        patience = self.patience if seconds is None else seconds
        woken = bool(select.select([listener.fileno()], [], [], patience)[0])
        listener.clear()
        return woken

    def listeners(self) -> list[int]:
        return [pid for (pid,) in self.query(LISTENERS, [f"LISTEN {CHANNEL}"])]

    def test_a_listener_that_lost_its_connection_connects_again(self) -> None:
        with (
            mock.patch.object(wakeup, "FIRST_PAUSE", 0.01),
            closing(Listener(self.connection)) as listener,
        ):
            assert self.is_woken(listener)
            [pid] = self.listeners()
            self.query("SELECT pg_terminate_backend(%s)", [pid])
            # It wakes its process by itself: notifications may have been missed.
            assert self.is_woken(listener)
            self.wait_until(lambda: len(self.listeners()) == 1, "the listener to connect again")
            assert self.listeners() != [pid]
            while self.is_woken(listener, 0.05):
                pass
            wakeup._notified_at.clear()
            self.dialect.ring(self.connection, ["mail"])
            assert self.is_woken(listener)

    def test_a_listener_without_a_server_connects_once_there_is_one(self) -> None:
        """It does not keep its process waiting for long, nor from starting."""
        settings = self.connection.settings_dict
        with (
            mock.patch.object(wakeup, "CONNECT_TIMEOUT", 0.05),
            mock.patch.object(wakeup, "LONGEST_PAUSE", 0.02),
        ):
            with mock.patch.dict(settings, {"PORT": "1"}):
                listener = Listener(self.connection)
            with closing(listener):
                assert not self.is_woken(listener, 0.1)
                listener._thread._wrapper.settings_dict["PORT"] = settings["PORT"]
                assert self.is_woken(listener)

    def test_a_closed_listener_leaves_no_connection(self) -> None:
        listener = Listener(self.connection)
        assert self.is_woken(listener)
        listener.close()
        self.wait_until(lambda: not self.listeners(), "the listener to be gone")


class TestNotifying(PostgresTestCase):
    def setUp(self) -> None:
        super().setUp()
        wakeup._notified_at.clear()

    def test_a_process_notifies_once_for_a_burst(self) -> None:
        with mock.patch.object(wakeup, "INTERVAL", 60.0), self.statements() as sent:
            for _ in range(20):
                self.dialect.ring(self.connection, ["mail"])
        assert len(sent) == 1
        assert "notify" in sent[0]

    def test_a_notification_that_fails_raises_nothing(self) -> None:
        """The job is stored: an error would have it enqueued again."""

        def fail(*context: object) -> None:
            raise OperationalError("the server is gone")

        with self.connection.execute_wrapper(fail):
            self.dialect.ring(self.connection, ["mail"])

    def test_a_notification_within_a_transaction_leaves_its_commit_durable(self) -> None:
        with atomic(using=self.using):
            self.dialect.ring(self.connection, ["mail"])
            assert self.query("SHOW synchronous_commit") == [("on",)]

    def test_a_notification_leaves_the_settings_of_a_transaction_begun_by_hand(self) -> None:
        set_autocommit(False, using=self.using)
        try:
            self.enqueue(new_job())
            self.dialect.ring(self.connection, ["mail"])
            assert self.query("SHOW synchronous_commit") == [("on",)]
        finally:
            rollback(using=self.using)
            set_autocommit(True, using=self.using)

    def test_a_full_queue_of_notifications_refuses_no_job(self) -> None:
        """It is told once."""
        self.query(FULL)
        self.addCleanup(self.query, "DROP FUNCTION refuse_notification()")
        wakeup._refusing.clear()
        self.enterContext(mock.patch.object(wakeup, "PAUSE", 0.0))
        for name in ("ENQUEUE_ONE_AND_NOTIFY", "ENQUEUE_ALIKE_AND_NOTIFY"):
            full = getattr(enqueue, name).replace(wakeup.PG_NOTIFY, "refuse_notification()")
            self.enterContext(mock.patch.object(enqueue, name, full))
        with self.assertLogs("steady_queue.postgres", "WARNING") as logs:
            self.enqueue(new_job())
            self.enqueue(new_job(), new_job())
        assert self.rows("Job").count() == 3
        assert len(logs.records) == 1

    def test_an_enqueue_after_a_pause_brings_its_notification_along(self) -> None:
        with mock.patch.object(wakeup, "INTERVAL", 60.0), self.statements() as sent:
            self.task_backend_enqueue()
        [statement] = sent
        assert "pg_notify" in statement

    def test_a_notification_that_soon_follows_another_is_sent_by_itself(self) -> None:
        """Notifications in a transaction make the commits of the whole server wait in line."""
        self.dialect.ring(self.connection, ["mail"])
        with mock.patch.object(wakeup, "INTERVAL", 0.0), self.statements() as sent:
            self.task_backend_enqueue()
        enqueue, notify = sent
        assert "notify" not in enqueue
        assert "pg_notify" in notify

    def test_an_enqueue_in_a_transaction_notifies_once_it_has_committed(self) -> None:
        with self.statements() as sent, atomic(using=self.using):
            self.task_backend_enqueue()
            assert not any("notify" in statement for statement in sent)
        assert "pg_notify" in sent[-1]
        assert "pg_notify" in sent[-1]

    def task_backend_enqueue(self) -> None:
        """Enqueue as the task backend does."""
        self.enqueue_many(3)
        self.dialect.ring_after_commit(self.connection, ["mail"])
