"""How often an operation goes to the server and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connections

from steady_queue_core.dialects import QueueSelector
from steady_queue_core.dialects.conformance.base import new_job

from .cases import ServerCase, on_each_server
from .counting_proxy import CountingProxy


class RoundTrips(ServerCase):
    def setUp(self) -> None:
        super().setUp()
        settings = self.connection.settings_dict
        known = dict(settings)
        self.connection.close()
        self.proxy = CountingProxy(settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 3306))
        # The traffic must be readable.
        options: dict[str, Any] = {"ssl_disabled": True}
        if "connector" not in settings["ENGINE"]:
            options = {"ssl_mode": "DISABLED"}
        settings.update(HOST="127.0.0.1", PORT=str(self.proxy.port),
                        OPTIONS={**settings["OPTIONS"], **options})  # fmt: skip
        self.dialect.share(self.connection)
        self.sql("SELECT %s", "x")  # Some drivers ask for sql_mode before their first value.

        def restore() -> None:
            connections[self.using].close()
            settings.update(known)
            self.proxy.close()

        self.addCleanup(restore)

    def trips(self, operation: Callable[[], Any]) -> int:
        before = self.proxy.commands
        operation()
        return self.proxy.commands - before

    def test_an_enqueue_takes_one(self) -> None:
        """Also one of many jobs, whenever they are due."""
        hour = timedelta(hours=1)
        self.assertEqual(self.trips(lambda: self.enqueue_many(1)), 1)
        self.assertEqual(self.trips(lambda: self.enqueue_many(500)), 1)
        self.assertEqual(self.trips(lambda: self.enqueue(new_job(delay=hour), new_job())), 1)
        later = self.present() + hour
        self.assertEqual(self.trips(lambda: self.enqueue(new_job(run_at=later))), 2)

    def test_an_idle_worker_takes_one(self) -> None:
        worker = self.register()
        self.assertEqual(self.trips(lambda: self.claim(process_id=worker)), 1)
        self.assertEqual(self.trips(lambda: self.dialect.dispatch(self.connection, 5)), 1)

    def test_a_busy_worker_takes_two_for_a_batch(self) -> None:
        worker = self.register()
        self.enqueue_many(100)
        claims = self.claim(50, process_id=worker)

        def both() -> None:
            held, taken = self.dialect.settle_and_claim(
                self.connection, [self.finished(claim) for claim in claims], worker,
                QueueSelector(), 50,
            )  # fmt: skip
            self.assertEqual((len(held), len(taken)), (50, 50))

        self.assertEqual(self.trips(both), 2)

    def test_a_claim_alone_takes_three_and_a_settlement_one(self) -> None:
        worker = self.register()
        self.enqueue_many(20)
        claims: list[Any] = []
        self.assertEqual(self.trips(lambda: claims.extend(self.claim(process_id=worker))), 3)
        self.assertEqual(self.trips(lambda: self.settle(*map(self.finished, claims))), 1)

    def test_a_permit_takes_one_and_the_first_of_all_two(self) -> None:
        def take() -> None:
            self.dialect.take_permit(self.connection, "key", 2, timedelta(seconds=9))

        self.assertEqual([self.trips(take) for _ in range(3)], [2, 1, 1])
        give = self.dialect.give_permit
        self.assertEqual(self.trips(lambda: give(self.connection, "key", 2)), 1)


on_each_server(globals(), RoundTrips)
