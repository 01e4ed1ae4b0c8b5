"""How often an operation goes to the server and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections

from steady_queue_core.conformance.base import limited_job, new_job
from steady_queue_core.dialects import CheckpointChange, NewJob, QueueSelector
from steady_queue_core.progress import Progress

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

    def test_a_checkpoint_takes_one(self) -> None:
        claim = self.claimed_job()
        change = CheckpointChange(claim.job_id, claim.token, "1", Progress(1, 2))
        save = partial(self.dialect.save_checkpoint, self.connection, change)
        self.assertEqual((self.trips(save), self.trips(save)), (1, 1))
        held = partial(self.dialect.is_held, self.connection, claim.job_id, claim.token)
        self.assertEqual(self.trips(held), 1)

    def test_a_busy_worker_takes_two_for_a_batch(self) -> None:
        worker = self.register()
        self.enqueue_many(100)
        claims = self.claim(50, process_id=worker)

        def both() -> None:
            held, taken = self.dialect.settle_and_claim(
                self.connection, [self.finished(claim) for claim in claims], self.identity(worker),
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

    def test_followers_take_four_and_a_key_that_nobody_waits_for_one(self) -> None:
        worker = self.register()
        self.enqueue(limited_job(), limited_job("other"), limited_job(), limited_job())
        holders = self.claim(process_id=worker)

        def follow(key: str) -> int:
            claims = [claim for claim in holders if claim.concurrency_key == key]
            process = self.identity(worker)
            return self.trips(
                lambda: self.dialect.claim_followers(self.connection, process, claims, 5)
            )

        self.assertEqual((follow("other"), follow("key")), (1, 4))

    def test_a_job_with_a_limit_takes_twice_as_many_at_most(self) -> None:
        worker = self.register()

        def life(job: NewJob) -> int:
            claims: list[Any] = []
            trips = self.trips(lambda: self.enqueue(job))
            trips += self.trips(lambda: claims.extend(self.claim(1, process_id=worker)))
            settle = self.dialect.settle_and_claim
            outcomes = [self.finished(claim) for claim in claims]
            return trips + self.trips(
                lambda: settle(self.connection, outcomes, self.identity(worker), QueueSelector(), 1)
            )

        plain = life(new_job())
        for _ in range(2):
            self.assertLessEqual(life(limited_job()), 2 * plain)


on_each_server(globals(), RoundTrips)
