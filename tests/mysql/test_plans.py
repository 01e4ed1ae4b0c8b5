"""How the servers carry out the statements: by an index that has the order, and by primary keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from steady_queue_core.conformance.base import ending, limited_job, new_job
from steady_queue_core.dialects import Ending
from steady_queue_mysql import claim_sql, dispatch, followers, listing, scan_position, settle
from steady_queue_mysql.batches import Statement
from steady_queue_mysql.inline_tables import with_ids
from steady_queue_mysql.semaphores import COUNT, COUNT_FEW, counting

from .cases import ServerCase, on_each_server

PERMITS = "steady_queue_permits"
INDEXES = {
    claim_sql.BY_RANK: claim_sql.NONE_PAUSED,
    claim_sql.BY_QUEUE: "r.queue_name = 'default'",
}


class Plans(ServerCase):
    def plan(self, statement: Statement) -> list[dict[str, Any]]:
        mariadb = self.on_mariadb
        with self.connection.cursor() as cursor:
            form = "" if mariadb else "FORMAT = TRADITIONAL"
            cursor.execute(f"EXPLAIN {form} {statement.sql}", statement.values or None)
            names = [column[0].lower() for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def access_to(self, alias: str, statement: Statement) -> dict[str, Any]:
        [access] = [row for row in self.plan(statement) if row["table"] == alias]
        for word in ("filesort", "temporary"):
            self.assertNotIn(word, access["extra"] or "", access)
        return access

    def each_size(self) -> Any:
        """Yield with an empty queue, a short one, and one that the optimizer knows to be long."""
        yield 0
        self.enqueue_many(3)
        yield 3
        self.enqueue(*[new_job(f"q{number % 10}") for number in range(3000)])
        self.enqueue(*[new_job(delay=timedelta(hours=1)) for _ in range(3000)])
        self.sql("UPDATE steady_queue_scheduled_executions SET due_at = UTC_TIMESTAMP(6)")
        self.sql("ANALYZE TABLE steady_queue_ready_executions, steady_queue_scheduled_executions")
        yield 3003

    def test_a_claim_reads_the_index_that_has_the_order(self) -> None:
        of = "" if self.on_mariadb else "OF r"
        for size in self.each_size():
            for index, where in INDEXES.items():
                sql = claim_sql.PICK.format(index=index, where=where, limit=5, of=of)
                access = self.access_to("r", Statement(sql))
                self.assertEqual(access["key"], index, (size, access))
                job = self.access_to("j", Statement(sql))
                self.assertEqual((job["type"], job["key"]), ("eq_ref", "PRIMARY"), (size, job))

    def test_the_newest_jobs_are_read_from_the_bookmark_on(self) -> None:
        for size in self.each_size():
            for read in (scan_position.newest(1), scan_position.any_new(1)):
                [access] = self.plan(read)
                self.assertEqual((access["type"], access["key"]), ("range", "PRIMARY"), size)

    def test_a_dispatch_reads_the_index_that_has_the_order(self) -> None:
        for size in self.each_size():
            sql = dispatch.PICK_DUE.format(limit=1000)
            [access] = self.plan(Statement(sql))
            self.assertEqual(access["key"], "steady_queue_scheduled_due", (size, access))
            self.assertNotIn("filesort", access["extra"] or "")

    def test_permits_are_counted_by_their_keys(self) -> None:
        """Whatever the optimizer knows of the table, or believes."""
        self.addCleanup(self.sql, "DELETE FROM steady_queue_permits")
        statements = [counting([*"abc", "k1"], sql, locking=True) for sql in (COUNT, COUNT_FEW)]
        for size in (0, 10, 20_000):
            for start in range(0, size, 5000):
                rows = ", ".join(f"({start + n}, 'k{n % 9}')" for n in range(min(size, 5000)))
                self.sql(f"REPLACE INTO steady_queue_permits (job_id, `key`) VALUES {rows}")
            self.sql("ANALYZE TABLE steady_queue_permits")
            for statement in statements:
                accesses = [row for row in self.plan(statement) if row["table"] == PERMITS]
                assert [(row["type"], row["key"]) for row in accesses] == [
                    ("ref", "steady_queue_permits_key")
                ] * 4, (size, accesses)

    def test_rows_are_deleted_by_their_primary_key(self) -> None:
        for size in self.each_size():
            for sql, alias in ((claim_sql.DELETE_READY, "r"), (dispatch.DELETE_SCHEDULED, "s")):
                [statement] = with_ids(sql, [1, 2, 3])
                access = self.access_to(alias, statement)
                self.assertEqual((access["type"], access["key"]), ("eq_ref", "PRIMARY"), size)

    def test_claims_are_settled_by_their_primary_key(self) -> None:
        first = self.claimed_job()
        self.enqueue(limited_job(), limited_job())
        worker = self.register()
        holders = self.claim(process_id=worker)
        [heir] = self.dialect.claim_followers(self.connection, self.identity(worker), holders, 1)
        self.followers.add(heir.job_id)
        outcomes = [self.finished(first), ending(Ending.RELEASED, first), self.failed(first),
                    ending(Ending.RETRIED, first, delay=3.0),
                    self.finished(holders[0], heir=(heir.job_id, heir.token))]  # fmt: skip
        for statement in settle.settlement(outcomes):
            access = self.access_to("c", statement)
            self.assertIn(access["type"], ("eq_ref", "const"), statement)
            self.assertEqual(access["key"], "PRIMARY", statement)

    def test_followers_are_read_in_the_order_of_the_index(self) -> None:
        for count in (2, 2000):
            self.enqueue(*[limited_job()] * count)
            self.sql("ANALYZE TABLE steady_queue_blocked_executions")
            sql = followers.PICK.replace("{limit}", "5")
            access = self.access_to("r", Statement(sql, ["key"]))
            self.assertEqual(access["key"], "steady_queue_blocked_release", (count, access))
            job = self.access_to("j", Statement(sql, ["key"]))
            self.assertEqual((job["type"], job["key"]), ("eq_ref", "PRIMARY"), (count, job))
            [access] = self.plan(Statement(followers.WAITING, ["key"]))
            self.assertEqual(access["key"], "steady_queue_blocked_release", (count, access))

    def test_queues_are_listed_by_a_loose_index_scan(self) -> None:
        for size in self.each_size():
            if size > 3:
                for prefix in ("", "q"):
                    [access] = self.plan(listing.listing(prefix))
                    self.assertEqual(access["key"], claim_sql.BY_QUEUE)
                    self.assertRegex(access["extra"], "group-by|skip scan", prefix)


on_each_server(globals(), Plans)
