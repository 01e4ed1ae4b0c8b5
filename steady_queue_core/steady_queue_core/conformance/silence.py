"""Limits on how long to wait for a server."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import Error

from .base import ConformanceCase
from .relay import Relay


class SilenceCases(ConformanceCase):
    def limited(self, seconds: float, **settings: Any) -> Any:
        """Return a new, unopened connection that waits ``seconds`` for an answer."""
        limited: Any = self.connection.copy()
        limited.settings_dict.update(settings)
        self.dialect.limit_silence(limited, seconds)
        self.assertIsNone(limited.connection, "to set a limit opens no connection")
        return limited

    def ask(self, connection: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return cursor.fetchone()[0]

    def assert_lost(self, connection: Any) -> None:
        """Check that a statement fails with an error of a lost connection."""
        with self.assertRaises(Error) as raised:
            self.ask(connection)
        error = raised.exception
        self.assertTrue(self.dialect.is_lost_connection(connection, error), repr(error))
        self.assertFalse(self.dialect.is_contention(connection, error), repr(error))
        with suppress(Error):
            connection.close()
        connection.connection = None

    def test_a_limited_connection_works_and_what_the_project_has_set_stands(self) -> None:
        first = self.limited(20.0)
        self.assertEqual(self.ask(first), 1)
        first.close()
        options = dict(first.settings_dict["OPTIONS"])
        second = self.limited(50.0, OPTIONS=dict(options))
        self.assertEqual(second.settings_dict["OPTIONS"], options)
        self.assertEqual(self.ask(second), 1)
        second.close()

    def test_a_server_that_falls_silent_is_lost(self) -> None:
        """During a session and while connecting. For servers on the network."""
        settings = self.connection.settings_dict
        if not (self.dialect.limits_silence and settings["PORT"]):
            self.skipTest("nothing is between us and the database, or no limit is set")
        relay = Relay(settings["HOST"] or "127.0.0.1", int(settings["PORT"]))

        def work() -> None:
            limited = self.limited(1.0, HOST="127.0.0.1", PORT=str(relay.port))
            try:
                self.assertEqual(self.ask(limited), 1)
                relay.silence()
                self.assert_lost(limited)
                self.assert_lost(limited)
                relay.resume()
                self.assertEqual(self.ask(limited), 1)
            finally:
                with suppress(Error):
                    limited.close()

        try:
            self.elsewhere(work)
        finally:
            relay.close()
