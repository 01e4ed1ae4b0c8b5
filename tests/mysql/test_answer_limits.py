"""A server that does not answer: the time-outs of either driver."""

from __future__ import annotations

from time import monotonic
from typing import Any

from django.db import OperationalError

from steady_queue_mysql import wakeup

from .cases import ServerCase, on_each_server


class Limits(ServerCase):
    def limited(self, **options: Any) -> Any:
        limited: Any = self.connection.copy()
        limited.settings_dict["OPTIONS"].update(options)
        self.dialect.limit_silence(limited, 7.0)
        self.addCleanup(limited.close)
        return limited

    def test_the_projects_own_limits_stand(self) -> None:
        limited = self.limited(read_timeout=1, connect_timeout=9)
        options = limited.settings_dict["OPTIONS"]
        self.assertEqual((options["read_timeout"], options["connect_timeout"]), (1, 9))
        self.assertEqual(options["write_timeout"], 7)
        began = monotonic()
        with self.assertRaises(OperationalError) as raised, limited.cursor() as cursor:
            cursor.execute("SELECT SLEEP(8)")
        self.assertLess(monotonic() - began, 7)
        self.assertTrue(self.dialect.is_lost_connection(limited, raised.exception))

    def test_nothing_is_waited_for_on_a_session_that_was_given_up(self) -> None:
        """The driver would ask it for a sign of life before each statement."""
        limited = self.limited(read_timeout=1)
        with self.assertRaises(OperationalError), limited.cursor() as cursor:
            cursor.execute("SELECT SLEEP(5)")
        began = monotonic()
        for _ in range(3):
            with self.assertRaises(OperationalError) as raised, limited.cursor() as cursor:
                cursor.execute("SELECT 1")
            self.assertTrue(self.dialect.is_lost_connection(limited, raised.exception))
        self.assertFalse(limited.is_usable())
        self.assertLess(monotonic() - began, 1.0)

    def test_a_listener_waits_longer_than_its_nap(self) -> None:
        limited = self.limited(read_timeout=1)
        limited.ensure_connection()
        made = wakeup.Listener(limited)
        self.addCleanup(made.close)
        waits = made._connection.settings_dict["OPTIONS"]["read_timeout"]
        self.assertGreater(waits, wakeup.WAIT_SECONDS)


on_each_server(globals(), Limits)
