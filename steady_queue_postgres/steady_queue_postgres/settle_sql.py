"""The statement that ends claims, put together from what a batch of outcomes needs.

Planning takes longer than running it: most batches have finished jobs alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache

from steady_queue_core.dialects import Ending, Outcome, tables

from .clock import NOW_SQL
from .conflicts import REPLACE, REPLACE_BLOCKED, REPLACE_SCHEDULED


class Move(Enum):
    """What may become of a job, in the order of the parts."""

    COMPLETED = "completed"
    ERASED = "erased"
    RELEASED = "released"
    READY = "ready"
    SCHEDULED = "scheduled"
    FAILED = "failed"
    UNPERMITTED = "unpermitted"
    BLOCKED = "blocked"
    KEPT_OUT = "kept_out"


# One text for all outcomes. A claim whose job somebody deleted ends here too, but was not held.
END = f"""
given AS MATERIALIZED (
  SELECT * FROM json_to_recordset(%(outcomes)s::json) AS outcome(
    job_id bigint, token bigint, ending text, queue_name text, "rank" smallint, attempts int,
    worker_ids text, errors text, started_at timestamptz, last_attempted_at timestamptz,
    return_value text, preserve boolean, delay bigint, exception_class text, message text,
    concurrency_key text)),
ended AS (
  DELETE FROM {tables.CLAIMED} AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
        AND claim.job_id = given.job_id AND claim.token = given.token
  RETURNING given.*)"""

#: Jobs of claims that have ended, found by their ids, whatever the planner knows of the tables.
OF_ENDED = "job.id = ANY(ARRAY(SELECT job_id FROM ended)) AND job.id = ended.job_id"

#: Of a job that is given back: it has no limit, or still its permit.
KEEPS_RIGHT = f"""(concurrency_key IS NULL OR EXISTS (
    SELECT FROM {tables.PERMITS} AS permit WHERE permit.job_id = released.job_id))"""
BLOCK = f"""
INSERT INTO {tables.BLOCKED} (job_id, queue_name, "rank", token, created_at, concurrency_key)
SELECT job_id, queue_name, "rank", token, {NOW_SQL}, concurrency_key"""

PARTS = {
    Move.COMPLETED: f"""
completed AS (
  UPDATE {tables.JOBS} AS job
  SET attempts = ended.attempts, token = ended.token, worker_ids = ended.worker_ids,
      errors = ended.errors, return_value = ended.return_value, started_at = ended.started_at,
      last_attempted_at = ended.last_attempted_at,
      finished_at = CASE WHEN ending <> 'retried' THEN {NOW_SQL} END
  FROM ended
  WHERE {OF_ENDED} AND ending <> 'released' AND (ending <> 'finished' OR preserve)
  RETURNING ended.*)""",
    Move.ERASED: f"""
erased AS (
  DELETE FROM {tables.JOBS} AS job USING ended
  WHERE {OF_ENDED} AND ending = 'finished' AND NOT preserve
  RETURNING ended.job_id)""",
    Move.RELEASED: f"""
released AS (
  SELECT ended.* FROM ended JOIN {tables.JOBS} AS job ON {OF_ENDED} WHERE ending = 'released'),
returned AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL} FROM released WHERE {KEEPS_RIGHT}
  {REPLACE})""",
    Move.READY: f"""
ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}
  FROM completed WHERE ending = 'retried' AND delay <= 0 AND concurrency_key IS NULL
  {REPLACE})""",
    Move.SCHEDULED: f"""
scheduled AS (
  INSERT INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at,
                                  concurrency_key)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL},
         {NOW_SQL} + delay * interval '1 microsecond', concurrency_key
  FROM completed WHERE ending = 'retried' AND delay > 0
  {REPLACE_SCHEDULED})""",
    Move.FAILED: f"""
failed AS (
  INSERT INTO {tables.FAILED} (job_id, created_at, exception_class, message)
  SELECT job_id, {NOW_SQL}, exception_class, message FROM completed WHERE ending = 'failed'
  ON CONFLICT (job_id) DO UPDATE SET created_at = excluded.created_at,
    exception_class = excluded.exception_class, message = excluded.message)""",
    Move.UNPERMITTED: f"""
unpermitted AS (
  DELETE FROM {tables.PERMITS}
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM ended WHERE ending <> 'released'))
  RETURNING "key"),
counted AS (
  UPDATE {tables.SEMAPHORES} AS known
  SET value = GREATEST(0, "limit" + (SELECT count(*) FROM unpermitted WHERE "key" = known."key")
                          - (SELECT count(*) FROM {tables.PERMITS} WHERE "key" = known."key"))
  WHERE "key" = ANY(ARRAY(SELECT "key" FROM unpermitted)))""",
    Move.BLOCKED: f"""
blocked AS (
  {BLOCK} FROM completed
  WHERE ending = 'retried' AND delay <= 0 AND concurrency_key IS NOT NULL
  {REPLACE_BLOCKED})""",
    Move.KEPT_OUT: f"""
kept_out AS (
  {BLOCK} FROM released WHERE NOT ({KEEPS_RIGHT})
  {REPLACE_BLOCKED})""",
}

#: The ids of the claims that were held, as a JSON list, or null.
HELD = "(SELECT json_agg(job_id)::text FROM held)"

#: The moves that tell which claims were held.
TELLING = (Move.COMPLETED, Move.ERASED, Move.RELEASED)


def moves_of(outcomes: Iterable[Outcome]) -> frozenset[Move]:
    """Return what may become of the jobs of a batch."""
    return frozenset(move for outcome in outcomes for move in _moves(outcome))


def _moves(outcome: Outcome) -> tuple[Move, ...]:
    limited = outcome.concurrency_key is not None
    if outcome.ending is Ending.RELEASED:
        return (Move.RELEASED, Move.KEPT_OUT) if limited else (Move.RELEASED,)
    permit = (Move.UNPERMITTED,) if limited else ()
    if outcome.ending is Ending.FINISHED:
        return (Move.COMPLETED if outcome.preserve else Move.ERASED, *permit)
    if outcome.ending is Ending.FAILED:
        return (Move.COMPLETED, Move.FAILED, *permit)
    if outcome.delay > 0:
        return (Move.COMPLETED, Move.SCHEDULED, *permit)
    return (Move.COMPLETED, Move.BLOCKED if limited else Move.READY, *permit)


@cache
def settling(moves: frozenset[Move]) -> str:
    """Return the common table expressions that end claims; the last of them is ``held``."""
    told = [f"SELECT job_id FROM {move.value}" for move in TELLING if move in moves]
    parts = [END, *(part for move, part in PARTS.items() if move in moves)]
    return ", ".join([*parts, f"held AS ({' UNION ALL '.join(told)})"])


def waiting(moves: frozenset[Move]) -> str:
    """Return an expression: whether a job waits for a permit that has ended."""
    if Move.UNPERMITTED not in moves:
        return "false"
    keys = 'ARRAY(SELECT "key" FROM unpermitted)'
    return f"EXISTS (SELECT FROM {tables.BLOCKED} WHERE concurrency_key = ANY({keys}))"


@cache
def statement(moves: frozenset[Move]) -> str:
    """Return a statement that ends claims and tells which were held, and whether a job waits."""
    return f"WITH {settling(moves)} SELECT {HELD}, {waiting(moves)}"
