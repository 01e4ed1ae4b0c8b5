"""Which server it is, and what Django is told of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

from django.db import connections
from django.test import SimpleTestCase

from steady_queue_core.conformance.base import new_job
from steady_queue_core.dialects import DialectUnsupported
from steady_queue_mysql import server

from .cases import ServerCase, on_each_server


class TestVersions(SimpleTestCase):
    def test_versions_are_read_as_servers_write_them(self) -> None:
        for text, mariadb, version in (
            ("9.7.4-2", False, (9, 7, 4)),
            ("8.4.3", False, (8, 4, 3)),
            ("10.11.19-MariaDB-0+deb12u1", True, (10, 11, 19)),
            ("5.5.5-10.6.2-MariaDB-log", True, (10, 6, 2)),
            ("11.8.2-MariaDB-ubu2404", True, (11, 8, 2)),
        ):
            found = server.parse(text, 1)
            self.assertEqual((found.is_mariadb, found.version), (mariadb, version))

    def test_a_server_too_old_is_refused_by_name(self) -> None:
        for text, name in (("8.0.42", "MySQL 8.0.42"), ("10.5.9-MariaDB", "MariaDB 10.5.9")):
            with self.assertRaises(DialectUnsupported) as raised:
                server.parse(text, 1).require_supported()
            self.assertEqual(
                str(raised.exception),
                f"{name} is too old for Steady Queue; it needs MySQL 8.4 or newer, or MariaDB "
                "10.6 or newer. Upgrade the server, or keep the queue in another database.",
            )
        for text in ("8.4.0", "9.7.4", "10.6.0-MariaDB", "11.4.2-MariaDB"):
            server.parse(text, 1).require_supported()

    def test_another_product_is_refused_by_name_whatever_its_version(self) -> None:
        for text, comment, name in (
            ("8.0.11-TiDB-v7.5.1", "TiDB Server (Apache License 2.0) Community Edition", "TiDB"),
            # Its version can be set to anything.
            ("8.4.3", "TiDB Server (Apache License 2.0) Community Edition", "TiDB"),
            ("8.4.0-Vitess", "Version: 21.0.0", "Vitess"),
            ("5.7.25-OceanBase_CE-v4.3.1.0", "OceanBase_CE 4.3.1.0", "OceanBase"),
        ):
            with self.assertRaises(DialectUnsupported) as raised:
                server.parse(text, 1, comment).require_supported()
            self.assertEqual(
                str(raised.exception),
                f"The server is {name} ({text}), which speaks the protocol of MySQL and locks rows "
                "otherwise: two workers could run the same job. Keep the queue in a database of "
                "MySQL, MariaDB, PostgreSQL or SQLite.",
            )
        for comment in ("MySQL Community Server - GPL", "Percona Server (GPL), Release 2"):
            server.parse("8.4.3", 1, comment).require_supported()


class Servers(ServerCase):
    def test_django_knows_what_it_is_connected_to(self) -> None:
        wrapper: Any = self.connection
        self.assertEqual(bool(wrapper.mysql_is_mariadb), self.on_mariadb)
        self.assertGreaterEqual(tuple(wrapper.mysql_version), (8, 4))
        features = wrapper.features
        self.assertTrue(getattr(features, "supports_microsecond_precision", True))
        self.assertTrue(features.has_select_for_update_skip_locked)
        self.assertEqual(features.has_select_for_update_of, not self.on_mariadb)

    def test_the_server_is_asked_once_for_each_connection(self) -> None:
        with mock.patch.object(server, "_ask", wraps=server._ask) as ask:
            self.connection.close()
            for _ in range(3):
                self.enqueue_many(1)
            self.assertEqual(ask.call_count, 1)
            self.connection.close()
            self.enqueue_many(1)
            self.assertEqual(ask.call_count, 2)

    def test_every_operation_refuses_a_server_too_old(self) -> None:
        for text, comment, message in (
            ("5.7.44-log", "", "MySQL 5.7.44 is too old"),
            ("8.4.3", "TiDB Server", "The server is TiDB"),
        ):
            self._refuses(server.parse(text, 1 << 20, comment), message)

    def _refuses(self, old: server.Server, message: str) -> None:
        with mock.patch.object(server, "_ask", return_value=old):
            self.connection.close()
            for operation in (lambda: self.enqueue_many(1), self.claim_nothing,
                              lambda: self.dialect.prepare(self.connection)):  # fmt: skip
                with self.assertRaisesRegex(DialectUnsupported, message):
                    operation()
            [problem] = self.dialect.checks(self.connection)
            self.assertEqual(problem.id, "steady_queue.E001")
        self.connection.close()

    def claim_nothing(self) -> Any:
        return self.dialect.list_queues(self.connection)

    def test_columns_hold_microseconds_every_character_and_exact_names(self) -> None:
        self.assertEqual(self.dialect.checks(self.connection), [])
        text = "ключ 🗝 'é\\' \x00"
        [job_id] = self.enqueue(new_job("a", arguments=text), new_job("A"))[:1]
        self.assertEqual(self.job(job_id).arguments, text)
        self.assertEqual([claim.arguments for claim in self.claim(5, "a")], [text])

    def test_the_time_zones_of_server_and_session_change_nothing(self) -> None:
        before = self.present()
        try:
            for zone in ("+05:45", "-09:00"):
                self.sql("SET SESSION time_zone = %s", zone)
                [later] = self.enqueue(new_job(delay=timedelta(seconds=30)))
                row = self.rows("ScheduledExecution").get(pk=later)
                due = self.aware(row.due_at) - timedelta(seconds=30)
                self.assert_between(before, due, self.present())
                self.assertLess(self.present() - before, timedelta(seconds=20))
                waits = self.dialect.dispatch(self.connection, 5).next_due_in
                assert waits is not None
                self.assertLess(waits, 30)
                self.enqueue_many(1)
                [claim] = self.claim()
                self.assert_between(before, claim.claimed_at, self.present())
                self.rows("Process").update(last_heartbeat_at=self.dialect.now(self.connection))
                beat = self.aware(self.rows("Process").first().last_heartbeat_at)
                self.assert_between(before, beat, self.present())
                self.settle(self.finished(claim))
                self.assertEqual(self.rows("Job").filter(enqueued_at__lt=before).count(), 0)
        finally:
            self.connection.close()

    def test_without_time_zones_in_django_utc_is_stored_all_the_same(self) -> None:
        with self.settings(USE_TZ=False):
            connections[self.using].close()
            before = self.present()
            self.enqueue(new_job(delay=timedelta(seconds=-1)))
            [claim] = self.claim()
            self.assert_between(before, claim.enqueued_at, self.present())
            self.settle(self.finished(claim))
            self.assert_between(before, self.aware(self.job(claim.job_id).finished_at),
                                self.present())  # fmt: skip


on_each_server(globals(), Servers)
