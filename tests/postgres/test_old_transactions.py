"""Claims stay cheap while an old transaction keeps the server from cleaning up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, nextafter
from unittest import mock

from django.db.transaction import atomic

from steady_queue_core.conformance.base import new_job
from steady_queue_core.dialects import tables
from steady_queue_core.dialects.portable import Span
from steady_queue_core.dialects.portable import scan_position as shared
from steady_queue_postgres import scan_position
from steady_queue_postgres.prepared import PreparedStatements

from .cases import PostgresTestCase

DEAD = 30_000


class TestOldTransactions(PostgresTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch.object(shared, "ASK_INTERVAL", 0.0))
        # Once the whole index was read, it is not read again, however slow the machine is.
        self.enterContext(mock.patch.object(shared, "SHARE", 1e-9))
        self.enterContext(mock.patch.object(shared, "LONGEST_PAUSE", 600.0))
        self.connection.__dict__.pop("steady_queue_claimers", None)
        self.worker = self.register()

    @contextmanager
    def old_transaction(self) -> Iterator[None]:
        """Keep a snapshot open, before rows of many claimed jobs die."""

        def look() -> None:
            self.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.query("SELECT 1")

        with self.holding(look):
            yield

    def make_dead(self, queue_name: str = "default") -> None:
        self.fill(DEAD, queue_name)
        self.query(f"DELETE FROM {tables.READY}")
        self.query(f"UPDATE {tables.JOBS} SET finished_at = now()")
        count = f"SELECT pg_stat_get_dead_tuples('{tables.READY}'::regclass)"
        self.wait_until(lambda: self.query(count)[0][0] >= scan_position.MANY, "the statistics")

    def pages_of_claim(self, *patterns: str) -> int:
        """Return how many pages a claim looks at."""
        with self.statements() as sent, atomic(using=self.using):
            assert self.claim(5, *patterns, process_id=self.worker)
            self.connection.set_rollback(True)
        with atomic(using=self.using):
            [(found,)] = self.query(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sent[-1]}")
            self.connection.set_rollback(True)
        return int(found[0]["Plan"]["Shared Hit Blocks"]) + int(
            found[0]["Plan"]["Shared Read Blocks"]
        )

    def settle_all(self) -> None:
        self.query(f"DELETE FROM {tables.CLAIMED}")
        self.query(f"DELETE FROM {tables.READY}")
        self.query(f"UPDATE {tables.JOBS} SET finished_at = now()")

    def test_a_claim_does_not_step_over_what_is_dead(self) -> None:
        for patterns in ((), ("default",)):
            with self.subTest(patterns), self.old_transaction():
                self.make_dead()
                self.enqueue_many(40)
                before = self.pages_of_claim(*patterns)
                for _ in range(3):
                    self.claim(5, *patterns, process_id=self.worker)
                after = self.pages_of_claim(*patterns)
                assert after < before / 2, (before, after)
                self.settle_all()

    def test_a_more_urgent_job_still_comes_first(self) -> None:
        with self.old_transaction():
            self.make_dead()
            self.enqueue_many(30)
            for _ in range(3):
                self.claim(5, process_id=self.worker)
            [urgent] = self.enqueue(new_job(rank=-5))
            [less] = self.enqueue(new_job(rank=5))
            claims = self.claim(100, process_id=self.worker)
            assert claims[0].job_id == urgent
            assert claims[-1].job_id == less
            assert len(claims) == 17
        self.settle_all()

    def test_a_job_behind_the_bookmark_is_found_by_a_look_at_all(self) -> None:
        with self.old_transaction():
            self.make_dead()
            late, *_ = self.enqueue_many(30)
            with self.holding(lambda: self.rows("ReadyExecution").filter(pk=late).delete()):
                for _ in range(3):
                    self.claim(5, process_id=self.worker)
            claims = self.claim(3, process_id=self.worker)
            assert late not in [claim.job_id for claim in claims]
            with mock.patch.object(shared, "LONGEST_PAUSE", 0.0):
                self.pass_time()
                assert late in [claim.job_id for claim in self.claim(3, process_id=self.worker)]
        self.settle_all()

    def test_a_job_behind_the_bookmark_is_claimed_by_an_idle_worker_that_looks_first(self) -> None:
        """A session that plans nothing has it look before it claims: that must not use up the look
        at the whole index."""
        assert PreparedStatements.of(self.connection) is None
        with self.old_transaction():
            self.make_dead()
            late, *others = self.enqueue_many(10)
            with self.holding(lambda: self.rows("ReadyExecution").filter(pk=late).delete()):
                while claims := self.claim(5, process_id=self.worker):
                    others = [each for each in others if each not in {job.job_id for job in claims}]
            assert others == []
            assert self.claim(5, process_id=self.worker) == []  # Behind the bookmark.
            [claimer] = self.connection.__dict__["steady_queue_claimers"].values()
            claimer._bookmarks._next_question = float("inf")
            claimer._bookmarks.look_at_all()
            assert claimer.probes_first
            assert [claim.job_id for claim in self.claim(5, process_id=self.worker)] == [late]
        self.settle_all()

    def test_an_idle_worker_goes_on_behind_the_jobs_of_a_paused_queue(self) -> None:
        """Looks for jobs alone put the bookmarks there, too."""
        self.fill(1000, "paused", -5)
        self.pause("paused")
        for _ in range(4):
            assert self.claim(5, process_id=self.worker) == []
        [claimer] = self.connection.__dict__["steady_queue_claimers"].values()
        after = nextafter(max(self.ids("Ready")), inf)
        assert Span(None, -5, after, shared.HIGHEST) in claimer._bookmarks.spans(whole=False)
        self.settle_all()

    def pass_time(self) -> None:
        """Let the time for the next look at all have come."""
        for claimer in self.connection.__dict__["steady_queue_claimers"].values():
            claimer._bookmarks.looked_at_all(0.0)
