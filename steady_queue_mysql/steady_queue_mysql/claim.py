"""Taking ready jobs: locked in the order of an index, so that a second worker gets the next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, ProcessIdentity, QueueSelector, portable, tables

from . import beside
from .bookmark import Bookmark
from .clock import NOW_SQL, read
from .conversation import Conversation, converse, is_in_transaction
from .listing import filled, listing
from .literals import ids, insertion, portions, statement
from .newest import MOST, OLDEST, any_new, newest, wanted
from .packets import Answer, Statement, send
from .server import server_of

# Read without a lock and a transaction, so that an idle worker costs one small statement.
ANY_READY = Statement(f"SELECT 1 FROM {tables.READY} LIMIT 1")
PAUSED = Statement(beside.PAUSED)
REGISTERED = f"SELECT 1 FROM {tables.PROCESSES} WHERE id = {{}} AND name = %s"

# The fifth column tells whether the job may be believed. MySQL reads it as of the beginning of the
# statement, and the ready row as of now: the job may have run in between, which its token tells, or
# was given back. The last one tells how long it took to come to a row, in microseconds: unlike
# NOW(), SYSDATE() moves on within a statement.
COLUMNS = f"""
r.job_id, r.token, r.queue_name, r.`rank`, j.finished_at IS NULL AND j.token = r.token,
j.task_path, j.backend_name, j.arguments, j.attempts, j.max_attempts, j.worker_ids, j.errors,
j.enqueued_at, j.started_at, j.concurrency_key, {NOW_SQL},
TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))"""
WITH_JOB = f"LEFT JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = r.job_id"
LOCK = "FOR UPDATE {of} SKIP LOCKED"

# InnoDB locks what it reads: only an index that has the rows in the order wanted, read from its
# start, locks no more than the limit. Without FORCE INDEX, and a condition that it can serve, a
# table that looks empty is read and locked whole, and sorted.
PICK = f"""
SELECT {COLUMNS} FROM {tables.READY} r FORCE INDEX ({{index}}) {WITH_JOB}
WHERE {{where}} ORDER BY r.`rank`, r.job_id LIMIT {{limit}} {LOCK}"""
PICK_GIVEN = f"""
SELECT {COLUMNS} FROM {{given}} STRAIGHT_JOIN {tables.READY} r FORCE INDEX (PRIMARY)
ON r.job_id = given.id {WITH_JOB}
LIMIT {{limit}} {LOCK}"""
BY_RANK, BY_QUEUE = "steady_queue_ready_poll", "steady_queue_ready_queue"
NONE_PAUSED = f"r.`rank` >= -32768 AND NOT EXISTS (SELECT 1 FROM {tables.PAUSES})"

# With a lock, to see what is newer than the snapshot of a caller's transaction, and to wait for
# whoever has locked the job: SKIP LOCKED has passed over it as if it were not there.
LOOK_AGAIN = f"""
SELECT j.id, j.finished_at IS NULL, j.task_path, j.backend_name, j.arguments, j.attempts,
       j.max_attempts, j.worker_ids, j.errors, j.enqueued_at, j.started_at, j.concurrency_key
FROM {{given}} STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY)
ON j.id = given.id LOCK IN SHARE MODE"""
RUNNING = f"""
SELECT c.job_id FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
ON c.job_id = given.id"""

INSERT_CLAIMED = f"""
INSERT INTO {tables.CLAIMED} (job_id, queue_name, `rank`, token, created_at, process_id) VALUES"""
DELETE_READY = f"""
DELETE r FROM {{given}} STRAIGHT_JOIN {tables.READY} r FORCE INDEX (PRIMARY)
ON r.job_id = given.id"""


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    if limit <= 0 or not _finds_any(connection):
        return []

    def work(conversation: Conversation) -> list[ClaimedJob]:
        return Claiming(conversation, process, selector, limit).run([])[1]

    return converse(connection, work)


def _finds_any(connection: BaseDatabaseWrapper) -> bool:
    bookmark = Bookmark.of(connection)
    if bookmark.serves and not is_in_transaction(connection):
        return bool(send(connection, [any_new(bookmark.start or 0)])[0].rows)
    began = time.monotonic()
    found = bool(send(connection, [ANY_READY])[0].rows)
    if not found and bookmark.is_wanted:
        bookmark.note_way(time.monotonic() - began)
    return found


class Claiming:
    """One claim, in its transaction."""

    def __init__(
        self,
        conversation: Conversation,
        process: ProcessIdentity,
        selector: QueueSelector,
        limit: int,
    ) -> None:
        self.conversation, self.process = conversation, process
        self.selector, self.limit = selector, limit
        # A caller's transaction may see the past: it is neither shown the bookmark nor moves it.
        connection, joined = conversation.connection, conversation.joined
        self.bookmark = Bookmark() if joined else Bookmark.of(connection)
        self.bookmarks = portable.Bookmarks() if joined else portable.Bookmarks.of(connection)
        # MariaDB cannot leave the job unlocked; nobody else wants a ready job's row.
        self._of = "" if server_of(conversation.connection).is_mariadb else "OF r"

    def run(self, before: Sequence[Statement]) -> tuple[list[Answer], list[ClaimedJob]]:
        """Claim, with the statements ``before`` on the way; return their answers and the jobs."""
        pick = self._pick_newest if self.bookmark.serves else self._pick_from_beginning
        answers, rows = pick([*before, registered(self.process), PAUSED])
        return answers[: len(before)], self._take(rows) if rows else []

    def _pick_newest(self, before: Sequence[Statement]) -> tuple[list[Answer], list[Any]]:
        """Pick from the bookmark on; from the beginning if there are too many to be sure."""
        *answers, found = self.conversation.ask([*before, newest(self.bookmark.start or 0)])
        paused = _paused(answers)
        if paused is None or not found.rows:
            return answers, []
        if len(found.rows) >= MOST:
            return answers, self._pick_all(paused)
        self.bookmark.move(found.rows[0][0])
        return answers, self._pick_given(wanted(found.rows, self.selector, paused), self.limit)

    def _pick_from_beginning(self, before: Sequence[Statement]) -> tuple[list[Answer], list[Any]]:
        if self.selector.takes_all and self.bookmarks.paused:
            return self._pick_beside(before)
        oldest = [OLDEST] if self.bookmark.is_wanted else []
        at_once = [self._pick_by_rank] if self.selector.takes_all else []
        answers = self.conversation.ask([*before, *oldest, *at_once])
        if oldest:
            self.bookmark.move(answers[len(before)].rows[0][0])
        paused = _paused(answers[: len(before)])
        if paused is None:
            return answers, []
        if at_once and paused:
            self.bookmarks.note_pauses(paused)
            return answers, self._pick_beside([])[1]
        rows = answers[-1].rows if at_once else self._pick_by_queue(paused)
        if rows:
            self.bookmark.note_way(rows[0][-1] / 1e6)
        return answers, list(rows)

    def _pick_beside(self, before: Sequence[Statement]) -> tuple[list[Answer], list[Any]]:
        """Pick by rank, beside the jobs of paused queues."""
        look = beside.Look(self.bookmarks, self.limit, self._locking(PICK_GIVEN, self.limit))
        answers = self.conversation.ask([*before, *look.statements])
        rows = look.learn(answers[len(before) :])
        if before and (paused := _paused(answers[: len(before)])) is not None:
            self.bookmarks.note_pauses(paused)
        elif before:
            return answers, []
        further = self.conversation.ask([look.further])[0].rows if look.is_short else ()
        if further:
            rows += self._pick_given([int(job_id) for job_id, _ in further], self.limit - len(rows))
        look.end(rows, found_all=look.is_short and not further)
        return answers, rows

    def _pick_all(self, paused: frozenset[str]) -> list[Any]:
        if not self.selector.takes_all:
            return self._pick_by_queue(paused)
        if paused:
            return self._pick_beside([])[1]
        return list(self.conversation.ask([self._pick_by_rank])[0].rows)

    @property
    def _pick_by_rank(self) -> Statement:
        return self._pick(BY_RANK, NONE_PAUSED, self.limit)

    def _pick_given(self, job_ids: Sequence[int], limit: int) -> list[Any]:
        """Lock the first of these jobs that nobody else has locked."""
        if not job_ids:
            return []
        sql = self._locking(PICK_GIVEN, limit)
        given = statement(sql, ["id"], [(job_id,) for job_id in job_ids])
        turns = {job_id: turn for turn, job_id in enumerate(job_ids)}
        return sorted(self.conversation.ask([given])[0].rows, key=lambda row: turns[row[0]])

    def _pick_by_queue(self, paused: frozenset[str]) -> list[Any]:
        rows: list[Any] = []
        for name in self._filled(self.selector.matching(self._existing, paused)):
            where = "r.queue_name = %s"
            statement = self._pick(BY_QUEUE, where, self.limit - len(rows), name)
            rows += self.conversation.ask([statement])[0].rows
            if len(rows) >= self.limit:
                break
        return rows

    def _existing(self, prefix: str) -> list[str]:
        [answer] = self.conversation.ask([listing(prefix)])
        return sorted(str(name) for (name,) in answer.rows)

    def _filled(self, names: Sequence[str]) -> list[str]:
        """Leave out empty queues: to lock their first rows takes a round trip for each."""
        if len(names) < 2:
            return list(names)
        found: set[str] = set()
        for some in portions(names):
            [answer] = self.conversation.ask([filled(some)])
            found.update(str(name) for (name,) in answer.rows)
        return [name for name in names if name in found]

    def _pick(self, index: str, where: str, limit: int, *values: str) -> Statement:
        sql = PICK.format(index=index, where=where, limit=int(limit), of=self._of)
        return Statement(sql, values)

    def _locking(self, sql: str, limit: int) -> str:
        return sql.replace("{limit}", str(int(limit))).replace("{of}", self._of)

    def _take(self, rows: list[Any]) -> list[ClaimedJob]:
        """Move the rows picked from ready to claimed; stray ones end here."""
        if not all(row[4] for row in rows):
            rows = self._second_look(rows)
        try:
            return self._move(rows, [row for row in rows if row[4]])
        except IntegrityError:
            # A stray ready row, of a job that runs, has kept us from all of them.
            running = self._running(rows)
            return self._move(rows, [row for row in rows if row[4] and row[0] not in running])

    def _move(self, rows: Sequence[Any], wanted: Sequence[Any]) -> list[ClaimedJob]:
        statements = ids(DELETE_READY, [row[0] for row in rows])
        taken = [(row[0], portable.next_token(row[1]), *row[2:]) for row in wanted]
        if taken:
            claims = [
                (row[0], row[2], row[3], row[1], row[15].isoformat(" ", "microseconds"),
                 self.process.id)
                for row in taken
            ]  # fmt: skip
            # One statement: if it fails, it has inserted nothing.
            statements.insert(0, insertion(INSERT_CLAIMED, claims))
        self.conversation.ask(statements, last=True)
        return [_claimed_job(row) for row in taken]

    def _second_look(self, rows: Sequence[Any]) -> list[Any]:
        doubtful = [row[0] for row in rows if not row[4]]
        answers = self.conversation.ask(ids(LOOK_AGAIN, doubtful))
        found = {row[0]: row[1:] for answer in answers for row in answer.rows}
        return [(*row[:4], *found.get(row[0], row[4:15]), *row[15:]) for row in rows]

    def _running(self, rows: Sequence[Any]) -> set[int]:
        answers = self.conversation.ask(ids(RUNNING, [row[0] for row in rows]))
        return {job_id for answer in answers for (job_id,) in answer.rows}


def registered(process: ProcessIdentity) -> Statement:
    """Return the statement that tells whether there still is such a process."""
    return Statement(REGISTERED.format(int(process.id)), [process.name])


def _paused(answers: Sequence[Answer]) -> frozenset[str] | None:
    """Return the names of the paused queues; ``None``: the process is not registered."""
    registered, paused = answers[-2:]
    return frozenset(str(name) for (name,) in paused.rows) if registered.rows else None


def _claimed_job(row: Any) -> ClaimedJob:
    present = row[15].replace(tzinfo=UTC)
    return ClaimedJob(
        job_id=row[0],
        token=row[1],
        queue_name=row[2],
        rank=row[3],
        task_path=row[5],
        backend_name=row[6],
        arguments=row[7],
        attempts=row[8],
        max_attempts=row[9],
        worker_ids=row[10],
        errors=row[11],
        enqueued_at=read(row[12], present),
        started_at=row[13] and read(row[13], present),
        claimed_at=present,
        concurrency_key=row[14],
    )
