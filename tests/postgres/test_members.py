"""Members that the statement of a settlement ends: what it locks, in which order, and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

from steady_queue_core.conformance.batch_rows import BatchRows
from steady_queue_core.dialects import tables
from steady_queue_postgres import claim_sql, members_sql, settle_sql

from .cases import PostgresTestCase

WITHOUT_OTHERS_LOCK = (" FOR UPDATE SKIP LOCKED", "")
WITHOUT_OWN_LOCK = ("ORDER BY job_id FOR UPDATE", "ORDER BY job_id")

WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'"""


class TestMembers(BatchRows, PostgresTestCase):
    patience = 20.0

    def test_one_statement_settles_ends_members_and_claims(self) -> None:
        self.batch_of(*[False] * 12)
        first, second, third, *_ = self.members_claimed(6)
        with self.statements() as sent:
            self.exchange(self.finished(first), limit=2)
            self.exchange(self.failed(second), self.finished(third), limit=2)
        assert len(sent) == 2, sent

    def test_another_member_is_found_by_the_index_however_many_there_are(self) -> None:
        batch = self.batch_of(*[False] * 20)
        self.query(
            f"""INSERT INTO {tables.MEMBERS} (batch_id, state, name)
                SELECT %s, number %% 2, '' FROM generate_series(1, 20000) AS number""",
            [batch],
        )
        self.query(f"ANALYZE {tables.MEMBERS}")
        claims = self.members_claimed(10)
        self.dialect.prepare(self.connection, impatient=True)
        self.addCleanup(self.connection.close)
        reads = (
            "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s"
        )
        with self.dialect.transaction(self.connection):
            [before] = self.query(reads, [tables.MEMBERS])
            self.exchange(*map(self.finished, claims), limit=5)
            [after] = self.query(reads, [tables.MEMBERS])
        assert after[0] - before[0] == 0
        assert after[1] - before[1] < 60

    def test_two_settlements_that_lock_each_others_member_both_end(self) -> None:
        assert self.end_both_at_once() == []
        assert self.rows("JobBatch").get().finished_at is not None

    def test_if_own_members_were_not_locked_first_there_would_be_a_deadlock(self) -> None:
        with changed(*WITHOUT_OWN_LOCK):
            [error] = self.end_both_at_once()
        assert "deadlock" in str(error)

    def test_if_the_other_member_were_not_locked_nobody_would_end_the_batch(self) -> None:
        with changed(*WITHOUT_OTHERS_LOCK):
            self.batch_of(False, False)
            first, second = self.members_claimed()
            with self.holding(lambda: self.exchange(self.finished(first))) as end:
                other = self.begin(partial(self.exchange, self.finished(second)))
                assert other.result(self.patience)[0] == {second.job_id}
                end(commit=True)
        assert self.rows("JobBatch").get().finished_at is None

    def end_both_at_once(self) -> list[BaseException]:
        """End the two members of a batch by statements that are in their midst at the same time;
        return their errors."""
        self.batch_of(False, False)
        claims = self.members_claimed()
        # The rows of jobs come between the locks of members and their ends.
        jobs = f"SELECT FROM {tables.JOBS} FOR UPDATE"
        with self.holding(lambda: self.query(jobs)) as end:
            ends = []
            for number, claim in enumerate(claims, 1):
                ends.append(self.begin(partial(self.exchange, self.finished(claim))))
                self.wait_until(lambda n=number: self.query(WAITING) == [(n,)], "it to wait")
            end(commit=True)
        return [error for each in ends if (error := each.exception(self.patience)) is not None]


@contextmanager
def changed(part: str, other: str) -> Iterator[None]:
    """Send a statement that lacks a guard."""
    assert part in members_sql.LOCKED
    caches = settle_sql.settling, settle_sql.statement, claim_sql.claiming
    with mock.patch.object(members_sql, "LOCKED", members_sql.LOCKED.replace(part, other)):
        for each in caches:
            each.cache_clear()
        yield
    for each in caches:
        each.cache_clear()
