"""Claims begin at a scan position while an old transaction keeps the server from cleaning up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db.transaction import atomic

from steady_queue_core.conformance.base import new_job
from steady_queue_core.dialects import QueueSelector, tables
from steady_queue_mysql import scan_position
from steady_queue_mysql.claim import Claim
from steady_queue_mysql.claim_sql import BY_QUEUE, BY_RANK
from steady_queue_mysql.scan_position import ScanPosition
from steady_queue_mysql.transactions import Transaction

from .cases import ServerCase, on_each_server

DEAD = 100_000


class OldTransactions(ServerCase):
    def setUp(self) -> None:
        super().setUp()
        # Every way counts as long, and none is taken again for a while.
        for name, value in (("SLOW_SCAN", 0.0), ("TIME_SHARE", 1e-9), ("SLACK", 0)):
            self.enterContext(mock.patch.object(scan_position, name, value))
        self.connection.__dict__.pop("steady_queue_scan_position", None)
        self.addCleanup(self.connection.__dict__.pop, "steady_queue_scan_position", None)
        self.worker = self.register()

    def use_position(self, *patterns: str) -> None:
        """Claim until claims begin at the position."""
        self.enqueue_many(scan_position.SLOW_SCANS + 2)
        for _ in range(scan_position.SLOW_SCANS):
            self.claim(1, *patterns, process_id=self.worker)
        self.read_from_beginning()
        self.claim(1, *patterns, process_id=self.worker)
        self.claim(1, *patterns, process_id=self.worker)
        self.assertTrue(ScanPosition.of(self.connection).is_usable)

    def read_from_beginning(self) -> None:
        """Let the time for the next read from the beginning have come."""
        ScanPosition.of(self.connection)._next_full_scan = 0.0

    def claimed(self, limit: int, *patterns: str) -> list[int]:
        return [job.job_id for job in self.claim(limit, *patterns, process_id=self.worker)]

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        sent: list[str] = []

        def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            sent.append(sql)
            return execute(sql, params, many, context)

        with self.connection.execute_wrapper(note):
            yield sent

    def test_a_claim_reads_by_ids_from_the_bookmark_on(self) -> None:
        for patterns in ((), ("default",), ("def*",)):
            self.use_position(*patterns)
            ids = self.enqueue_many(5)
            with self.statements() as sent:
                self.assertEqual(self.claimed(5, *patterns), ids)
                self.assertEqual(self.claimed(5, *patterns), [])
            self.assertEqual(ScanPosition.of(self.connection).start, ids[0])
            for index in (BY_RANK, BY_QUEUE):
                self.assertNotIn(index, " ".join(sent), patterns)

    def test_what_is_dead_does_not_lie_on_the_way_by_ids(self) -> None:
        with self.holding(self.look):
            self.make_dead()
            [job_id] = self.enqueue_many(1)
            newest = self.shortest_way("PRIMARY", f"job_id >= {job_id}", "job_id")
            oldest = self.shortest_way(BY_RANK, "`rank` >= -32768", "`rank`, job_id")
            self.assertLess(newest, oldest / 3)

    def test_the_order_is_that_of_the_selector(self) -> None:
        self.use_position()
        [less] = self.enqueue(new_job(rank=5))
        [plain] = self.enqueue(new_job("b"))
        [urgent] = self.enqueue(new_job("a", rank=-5))
        paused = self.enqueue_many(1, "paused")
        selector = QueueSelector()
        read = scan_position.newest(ScanPosition.of(self.connection).start or 0)
        rows = self.sql(read.sql)
        found = scan_position.in_order(rows, selector, frozenset())
        self.assertEqual(found, [urgent, plain, *paused, less])
        self.assertEqual(self.claimed(2), [urgent, plain])
        self.pause("paused")
        self.assertEqual(self.claimed(9), [less])
        self.rows("Pause").delete()
        one, two, three = self.enqueue(new_job("b"), new_job("a"), new_job("b", rank=-1))
        self.assertEqual(self.claimed(9, "b", "a"), [three, one, two])
        self.assertEqual(self.claimed(9), paused)

    def test_a_job_behind_the_bookmark_is_found_by_a_read_from_the_beginning(self) -> None:
        late, *_ = self.enqueue_many(1)
        with self.holding(lambda: self.rows("ReadyExecution").filter(pk=late).delete()):
            self.use_position("default")
            ScanPosition.of(self.connection).move(late + 1)
        self.enqueue_many(2)
        self.assertNotIn(late, self.claimed(2))
        self.assertEqual(self.claimed(2), [])
        with mock.patch.object(scan_position, "MAX_INTERVAL", 0.0):
            ScanPosition.of(self.connection).note_scan(1.0)
            self.assertEqual(self.claimed(2), [late])

    def test_a_job_that_is_committed_a_little_late_is_found_at_once(self) -> None:
        self.enterContext(mock.patch.object(scan_position, "SLACK", 1))
        self.use_position()
        late, later = self.enqueue_many(2)
        [row] = self.rows("ReadyExecution").filter(pk=late)
        self.rows("ReadyExecution").filter(pk=late).delete()
        self.assertEqual(self.claimed(9), [later])
        row.save(using=self.using, force_insert=True)
        self.assertEqual(self.claimed(9), [late])

    def test_a_backlog_is_claimed_in_order(self) -> None:
        self.use_position()
        ids = self.enqueue_many(scan_position.MAX_NEWEST)
        [urgent] = self.enqueue(new_job(rank=-5))
        self.assertEqual(self.claimed(1), [urgent])
        self.assertEqual(self.claimed(2, "default"), ids[:2])

    def test_two_workers_share_what_is_new(self) -> None:
        self.use_position()
        ids = self.enqueue_many(10)
        other = self.register()

        def claim() -> list[int]:
            ScanPosition.of(self.connection).__dict__.update(mine.__dict__)
            transaction = Transaction(self.connection)
            claims = Claim(transaction, self.identity(other), QueueSelector(), 4).run([])[1]
            return [job.job_id for job in claims]

        mine = ScanPosition.of(self.connection)
        with self.holding(lambda: self.sql(f"DELETE FROM {tables.READY} WHERE job_id = {ids[1]}")):
            self.assertEqual(self.elsewhere(claim), [ids[0], *ids[2:5]])
            self.assertEqual(self.claimed(9), ids[5:])
        self.assertEqual(self.claimed(9), [ids[1]])

    def test_no_more_of_what_is_new_is_locked_than_is_taken(self) -> None:
        ids = self.enqueue_many(10)
        count = f"SELECT job_id FROM {tables.READY} FOR UPDATE SKIP LOCKED"
        with atomic(using=self.using):
            claiming = Claim(
                Transaction(self.connection), self.identity(self.worker), QueueSelector(), 4
            )
            self.assertEqual([row["job_id"] for row in claiming._pick_given(ids, 4)], ids[:4])
            self.assertEqual(len(self.elsewhere(lambda: self.sql(count))), 6)

    def test_it_is_used_when_the_way_was_long_several_times(self) -> None:
        found = ScanPosition()
        with mock.patch.object(scan_position, "SLOW_SCAN", 0.01):
            found.move(500)
            for seconds in (0.02, 0.02, 0.001, 0.02, 0.02):
                found.note_scan(seconds)
                self.assertFalse(found.is_usable)
            found.note_scan(0.02)
            self.assertTrue(found.is_usable)
            found.note_scan(0.001)
            self.assertFalse(found.is_usable)

    def look(self) -> None:
        """Have a snapshot from now on."""
        self.sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.sql(f"SELECT 1 FROM {tables.JOBS} LIMIT 1")

    def make_dead(self) -> None:
        """Insert rows, and delete them again."""
        digit = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(10))
        places = range(len(str(DEAD - 1)))
        number = " + ".join(f"{10**place} * d{place}.n" for place in places)
        self.sql(
            f"INSERT INTO {tables.READY} (job_id, queue_name, `rank`, token, created_at, turn) "
            f"SELECT -1 - ({number}), 'default', 0, 0, UTC_TIMESTAMP(6), -1 - ({number}) "
            f"FROM {', '.join(f'({digit}) d{place}' for place in places)}"
        )
        self.sql(f"DELETE FROM {tables.READY}")

    def shortest_way(self, index: str, where: str, order: str) -> int:
        """Return how many microseconds it takes, at best, to come to the first row."""
        sql = f"""
            SELECT queue_name, TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) FROM {tables.READY}
            FORCE INDEX ({index}) WHERE {where} ORDER BY {order} LIMIT 1"""
        return min(int(self.sql(sql)[0][1]) for _ in range(5))


on_each_server(globals(), OldTransactions)
