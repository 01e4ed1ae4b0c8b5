"""Claiming ready jobs: locked in the order of an index, so that another worker gets the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import TypeVar

from django.db import DatabaseError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, ProcessIdentity, QueueSelector, portable

from . import claim_sql as sql
from .batches import Result, Statement, execute_all
from .claim_sql import Row, named
from .clock import read, to_text
from .errors import is_contention
from .inline_tables import chunks, insert_rows, with_ids, with_table
from .listing import filled, listing
from .locked_jobs import LockedJobs
from .paused_scan import PausedScan
from .scan_position import MAX_NEWEST, OLDEST, ScanPosition, any_new, in_order, newest
from .server import server_of
from .transactions import Transaction, is_in_transaction, run_in_transaction

T = TypeVar("T")

#: How many locked jobs a claim goes around.
MOST_LOCKED = 100


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    if limit <= 0 or not _finds_any(connection):
        return []

    def work(transaction: Transaction) -> list[ClaimedJob]:
        return Claim(transaction, process, selector, limit).run([])[1]

    try:
        return run_in_claim(connection, work)
    except DatabaseError as error:
        if is_in_transaction(connection) or not is_contention(connection, error):
            raise
        # The jobs that are locked are left out now.
        return run_in_claim(connection, work)


def run_in_claim(connection: BaseDatabaseWrapper, work: Callable[[Transaction], T]) -> T:
    """Run ``work``, which claims jobs, in a transaction; note if that has met a lock."""
    try:
        return run_in_transaction(connection, work)
    except DatabaseError as error:
        if is_contention(connection, error):
            LockedJobs.of(connection).note_wait()
        raise


def _finds_any(connection: BaseDatabaseWrapper) -> bool:
    position = ScanPosition.of(connection)
    if position.is_usable and not is_in_transaction(connection):
        return bool(execute_all(connection, [any_new(position.start or 0)])[0].rows)
    began = time.monotonic()
    found = bool(execute_all(connection, [sql.ANY_READY])[0].rows)
    if not found and position.is_needed:
        position.note_scan(time.monotonic() - began)
    return found


class Claim:
    """One claim, in its transaction."""

    def __init__(
        self,
        transaction: Transaction,
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> None:
        self.transaction, self.process = transaction, process
        self.selector, self.limit, self.wanted = selector, limit, limit
        self._goes_around_locked = LockedJobs.of(transaction.connection).are_expected
        if self._goes_around_locked:
            self.limit += MOST_LOCKED
        # A caller's transaction may see the past: it neither uses nor moves the position.
        connection, joined = transaction.connection, transaction.joined
        self.position = ScanPosition() if joined else ScanPosition.of(connection)
        self.bookmarks = portable.Bookmarks()
        if not joined:
            self.bookmarks = portable.Bookmarks.of(connection, selector.excluded)
        # MariaDB cannot leave the job unlocked; nothing else locks the row of a ready job.
        self._of = "" if server_of(connection).is_mariadb else "OF r"

    def run(self, before: Sequence[Statement]) -> tuple[list[Result], list[ClaimedJob]]:
        """Claim jobs, with the statements ``before`` in the first batch; return their results and
        the jobs."""
        pick = self._pick_newest if self.position.is_usable else self._pick_from_beginning
        results, rows = pick([*before, sql.registered(self.process), sql.PAUSED])
        if rows and self._goes_around_locked:
            rows = self._free(rows)[: self.wanted]
        return results[: len(before)], self._take(rows) if rows else []

    def _pick_newest(self, before: Sequence[Statement]) -> tuple[list[Result], list[Row]]:
        """Pick from the position on, or from the beginning if there is a backlog."""
        start = self.position.start or 0
        *results, found = self.transaction.execute([*before, newest(start)])
        paused = _paused(results)
        if paused is None or not found.rows:
            return results, []
        if len(found.rows) >= MAX_NEWEST:
            return results, self._pick_all(paused)
        self.position.move(found.rows[0][0])
        return results, self._pick_given(in_order(found.rows, self.selector, paused), self.limit)

    def _pick_from_beginning(self, before: Sequence[Statement]) -> tuple[list[Result], list[Row]]:
        if self.selector.takes_all and (self.bookmarks.paused or self.selector.excluded):
            return self._pick_around_paused(before)
        oldest = [OLDEST] if self.position.is_needed else []
        at_once = [self._pick_by_rank] if self.selector.takes_all else []
        results = self.transaction.execute([*before, *oldest, *at_once])
        if oldest:
            self.position.move(results[len(before)].rows[0][0])
        paused = _paused(results[: len(before)])
        if paused is None:
            return results, []
        if at_once and paused:
            self.bookmarks.note_pauses(paused)
            return results, self._pick_around_paused([])[1]
        rows = named(results[-1]) if at_once else self._pick_by_queue(paused)
        if rows:
            self.position.note_scan(rows[0]["scanned"] / 1e6)
        return results, rows

    def _pick_around_paused(self, before: Sequence[Statement]) -> tuple[list[Result], list[Row]]:
        """Pick by rank, while there are queues that are paused or excluded."""
        pick = self._locking(sql.PICK_GIVEN, self.limit)
        scan = PausedScan(self.bookmarks, self.limit, pick, self.selector)
        results = self.transaction.execute([*before, *scan.statements])
        rows = scan.locked(results[len(before) :])
        if before and (paused := _paused(results[: len(before)])) is not None:
            self.bookmarks.note_pauses(paused)
        elif before:
            return results, []
        further = self.transaction.execute([scan.further])[0].rows if scan.is_short else ()
        if further:
            rows += self._pick_given([int(job_id) for job_id, _ in further], self.limit - len(rows))
        scan.finish(rows, found_all=scan.is_short and not further)
        return results, rows

    def _pick_all(self, paused: frozenset[str]) -> list[Row]:
        if not self.selector.takes_all:
            return self._pick_by_queue(paused)
        if paused or self.selector.excluded:
            return self._pick_around_paused([])[1]
        return named(self.transaction.execute([self._pick_by_rank])[0])

    @property
    def _pick_by_rank(self) -> Statement:
        return self._pick(sql.BY_RANK, sql.NONE_PAUSED, self.limit)

    def _pick_given(self, job_ids: Sequence[int], limit: int) -> list[Row]:
        """Lock the first of these jobs that no other transaction has locked."""
        if not job_ids:
            return []
        pick = self._locking(sql.PICK_GIVEN, limit)
        given = with_table(pick, ["id"], [(job_id,) for job_id in job_ids])
        turns = {job_id: turn for turn, job_id in enumerate(job_ids)}
        rows = named(self.transaction.execute([given])[0])
        return sorted(rows, key=lambda row: turns[row["job_id"]])

    def _pick_by_queue(self, paused: frozenset[str]) -> list[Row]:
        rows: list[Row] = []
        for name in self._filled(self.selector.matching(self._existing, paused)):
            pick = self._pick(sql.BY_QUEUE, "r.queue_name = %s", self.limit - len(rows), name)
            rows += named(self.transaction.execute([pick])[0])
            if len(rows) >= self.limit:
                break
        return rows

    def _existing(self, prefix: str) -> list[str]:
        [result] = self.transaction.execute([listing(prefix)])
        return sorted(str(name) for (name,) in result.rows)

    def _filled(self, names: Sequence[str]) -> list[str]:
        """Leave out empty queues: locking the first rows of each takes a round trip."""
        if len(names) < 2:
            return list(names)
        found: set[str] = set()
        for chunk in chunks(names):
            [result] = self.transaction.execute([filled(chunk)])
            found.update(str(name) for (name,) in result.rows)
        return [name for name in names if name in found]

    def _pick(self, index: str, where: str, limit: int, *values: str) -> Statement:
        text = sql.PICK.format(index=index, where=where, limit=int(limit), of=self._of)
        return Statement(text, values)

    def _locking(self, text: str, limit: int) -> str:
        return text.replace("{limit}", str(int(limit))).replace("{of}", self._of)

    def _take(self, rows: list[Row]) -> list[ClaimedJob]:
        """Move the picked rows from ready to claimed. Stray ones are deleted."""
        if not all(row["is_current"] for row in rows):
            rows = self._read_again(rows)
        current = [row for row in rows if row["is_current"]]
        try:
            return self._move(rows, current)
        except IntegrityError:
            # A stray ready row, of a job that is running, has prevented the claim of all of them.
            running = self._running(rows)
            return self._move(rows, [row for row in current if row["job_id"] not in running])

    def _free(self, rows: Sequence[Row]) -> list[Row]:
        """Leave out the jobs that somebody keeps locked, and those that are gone."""
        share = server_of(self.transaction.connection).lock_to_share
        statements = with_ids(sql.FREE.replace("{share}", share), [row["job_id"] for row in rows])
        results = self.transaction.execute(statements)
        free = {job_id for result in results for (job_id,) in result.rows}
        return [row for row in rows if row["job_id"] in free]

    def _move(self, rows: Sequence[Row], wanted: Sequence[Row]) -> list[ClaimedJob]:
        statements = with_ids(sql.DELETE_READY, [row["job_id"] for row in rows])
        claims = [claimed_job(row) for row in wanted]
        if claims:
            # One statement: if it fails, it has inserted nothing.
            statements.insert(0, inserting(claims, self.process))
        self.transaction.execute(statements, last=True)
        return claims

    def _read_again(self, rows: Sequence[Row]) -> list[Row]:
        doubtful = [row["job_id"] for row in rows if not row["is_current"]]
        results = self.transaction.execute(with_ids(sql.READ_AGAIN, doubtful))
        found = {row["job_id"]: row for result in results for row in named(result, sql.REREAD)}
        return [row | found.get(row["job_id"], {}) for row in rows]

    def _running(self, rows: Sequence[Row]) -> set[int]:
        job_ids = [row["job_id"] for row in rows]
        results = self.transaction.execute(with_ids(sql.RUNNING, job_ids))
        return {job_id for result in results for (job_id,) in result.rows}


def _paused(results: Sequence[Result]) -> frozenset[str] | None:
    """Return the names of the paused queues, or ``None`` if the process is not registered."""
    registered, paused = results[-2:]
    return frozenset(str(name) for (name,) in paused.rows) if registered.rows else None


def inserting(claims: Sequence[ClaimedJob], process: ProcessIdentity) -> Statement:
    """Return a statement that inserts the rows of claims."""
    values = [
        (job.job_id, job.queue_name, job.rank, job.token, to_text(job.claimed_at), process.id)
        for job in claims
    ]
    return insert_rows(sql.INSERT_CLAIMED, values)


def claimed_job(row: Row) -> ClaimedJob:
    """Return a claim from a picked row."""
    token = portable.next_token(row["token"])
    return ClaimedJob.from_row(row | {"token": token}, row["now"].replace(tzinfo=UTC), read)
