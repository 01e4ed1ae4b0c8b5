"""The statement that ends claims, composed of the parts that a batch of outcomes needs.

Planning takes longer than running it: most batches have finished jobs alone.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

from steady_queue_core.dialects import tables

from . import heirs_sql, members_sql
from .clock import NOW_SQL
from .conflicts import REPLACE_BLOCKED, REPLACE_READY, REPLACE_SCHEDULED


class Part(Enum):
    """Parts of the statement, in their order."""

    #: The outcomes differ only in what ``GIVEN_ALIKE`` takes as arrays; not a part of its own.
    ALIKE = "alike"
    UPDATED = "updated"
    DELETED = "deleted"
    RELEASED = "released"
    READY = "ready"
    SCHEDULED = "scheduled"
    FAILED = "failed"
    HEIRS = "heir"
    PERMITS = "ended_permit"
    BLOCKED = "blocked"
    RELEASED_BLOCKED = "released_blocked"
    #: Memberships end, or nothing does.
    MEMBERS = "member"


# One text for all outcomes.
GIVEN = """
given AS MATERIALIZED (
  SELECT * FROM json_to_recordset(%(outcomes)s::json) AS outcome(
    job_id bigint, token bigint, ending text, queue_name text, "rank" smallint, attempts int,
    worker_ids text, errors text, started_at timestamptz, last_attempted_at timestamptz,
    return_value text, preserve boolean, delay bigint, exception_class text, message text,
    fingerprint text, concurrency_key text))"""

# What they have in common is sent once.
GIVEN_ALIKE = """
given AS MATERIALIZED (
  SELECT job_id, token, 'finished' AS ending, %(attempts)s::int AS attempts,
         %(worker_ids)s::text AS worker_ids, %(errors)s::text AS errors,
         to_timestamp(started) AS started_at, to_timestamp(started) AS last_attempted_at,
         return_value, %(preserve)s::boolean AS preserve
  FROM unnest(%(job_ids)s::bigint[], %(tokens)s::bigint[], %(started)s::float8[],
              %(return_values)s::text[]) AS outcome(job_id, token, started, return_value))"""

# A claim whose job was deleted ends here too, but was not held.
ENDED = f"""
ended AS (
  DELETE FROM {tables.CLAIMED} AS claim USING given
  WHERE claim.job_id = ANY(ARRAY(SELECT job_id FROM given))
        AND claim.job_id = given.job_id AND claim.token = given.token{{condition}}
  RETURNING given.*)"""

#: Joins the jobs of ended claims by their ids, whatever the planner knows of the tables.
OF_ENDED = "job.id = ANY(ARRAY(SELECT job_id FROM ended)) AND job.id = ended.job_id"

#: Whether a released job has no limit, or still holds its permit.
KEEPS_PERMIT = f"""(concurrency_key IS NULL OR EXISTS (
    SELECT FROM {tables.PERMITS} AS permit WHERE permit.job_id = released.job_id))"""
BLOCK = f"""
INSERT INTO {tables.BLOCKED} (job_id, queue_name, "rank", token, created_at, concurrency_key)
SELECT job_id, queue_name, "rank", token, {NOW_SQL}, concurrency_key"""

PARTS = {
    Part.UPDATED: f"""
updated AS (
  UPDATE {tables.JOBS} AS job
  SET attempts = ended.attempts, token = ended.token, worker_ids = ended.worker_ids,
      errors = ended.errors, return_value = ended.return_value, started_at = ended.started_at,
      last_attempted_at = ended.last_attempted_at,
      finished_at = CASE WHEN ending <> 'retried' THEN {NOW_SQL} END
  FROM ended
  WHERE {OF_ENDED} AND ending <> 'released' AND (ending <> 'finished' OR preserve)
  RETURNING ended.*)""",
    Part.DELETED: f"""
deleted AS (
  DELETE FROM {tables.JOBS} AS job USING ended
  WHERE {OF_ENDED} AND ending = 'finished' AND NOT preserve
  RETURNING ended.job_id)""",
    Part.RELEASED: f"""
released AS (
  SELECT ended.* FROM ended JOIN {tables.JOBS} AS job ON {OF_ENDED} WHERE ending = 'released'),
released_ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}, job_id FROM released WHERE {KEEPS_PERMIT}
  {REPLACE_READY})""",
    Part.READY: f"""
ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}, job_id
  FROM updated WHERE ending = 'retried' AND delay <= 0 AND concurrency_key IS NULL
  {REPLACE_READY})""",
    Part.SCHEDULED: f"""
scheduled AS (
  INSERT INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at,
                                  concurrency_key)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL},
         {NOW_SQL} + delay * interval '1 microsecond', concurrency_key
  FROM updated WHERE ending = 'retried' AND delay > 0
  {REPLACE_SCHEDULED})""",
    Part.FAILED: f"""
failed AS (
  INSERT INTO {tables.FAILED} (job_id, created_at, exception_class, message, fingerprint)
  SELECT job_id, {NOW_SQL}, exception_class, message, fingerprint
  FROM updated WHERE ending = 'failed'
  ON CONFLICT (job_id) DO UPDATE SET created_at = excluded.created_at,
    exception_class = excluded.exception_class, message = excluded.message,
    fingerprint = excluded.fingerprint)""",
    Part.HEIRS: heirs_sql.PASS,
    Part.PERMITS: f"""
ended_permit AS (
  DELETE FROM {tables.PERMITS}
  WHERE job_id = ANY(ARRAY(SELECT job_id FROM ended WHERE ending <> 'released'))
  RETURNING "key"),
counted AS (
  UPDATE {tables.SEMAPHORES} AS known
  SET value = LEAST("limit", value + (SELECT count(*) FROM ended_permit
                                      WHERE "key" = known."key"))
  WHERE "key" = ANY(ARRAY(SELECT "key" FROM ended_permit)))""",
    Part.BLOCKED: f"""
blocked AS (
  {BLOCK} FROM updated
  WHERE ending = 'retried' AND delay <= 0 AND concurrency_key IS NOT NULL
  {REPLACE_BLOCKED})""",
    Part.RELEASED_BLOCKED: f"""
released_blocked AS (
  {BLOCK} FROM released WHERE NOT ({KEEPS_PERMIT})
  {REPLACE_BLOCKED})""",
}

_HELD = "(SELECT json_agg(job_id)::text FROM held)"

#: The parts whose rows are the jobs of claims that were held.
HELD_BY = (Part.UPDATED, Part.DELETED, Part.RELEASED)


@cache
def settling(parts: frozenset[Part]) -> str:
    """Return the common table expressions that end claims."""
    expressions = [GIVEN_ALIKE if Part.ALIKE in parts else GIVEN]
    if Part.MEMBERS in parts:
        expressions += [
            members_sql.LOCKED,
            ENDED.format(condition=f" AND NOT {members_sql.DECLINED}"),
        ]
    else:
        expressions += [ENDED.format(condition="")]
    expressions += [expression for part, expression in PARTS.items() if part in parts]
    holders = [f"SELECT job_id FROM {part.value}" for part in HELD_BY if part in parts]
    expressions += [f"held AS ({' UNION ALL '.join(holders)})"]
    if Part.MEMBERS in parts:
        alike = Part.ALIKE in parts
        expressions += [members_sql.END_ALIKE if alike else members_sql.END]
    text = ", ".join(expressions)
    return heirs_sql.completed(text) if Part.HEIRS in parts else text


def held(parts: frozenset[Part]) -> str:
    """Return an expression: the ids of the claims that were held, as a JSON list or NULL; JSON's
    null if the statement has changed nothing."""
    return members_sql.UNLESS_DECLINED.format(_HELD) if Part.MEMBERS in parts else _HELD


def has_waiting(parts: frozenset[Part]) -> str:
    """Return an expression: whether a job waits for a permit that has ended."""
    if Part.PERMITS not in parts:
        return "false"
    keys = 'ARRAY(SELECT "key" FROM ended_permit)'
    return f"EXISTS (SELECT FROM {tables.BLOCKED} WHERE concurrency_key = ANY({keys}))"


@cache
def statement(parts: frozenset[Part]) -> str:
    """Return a statement that ends claims, and selects ``held`` and ``has_waiting``."""
    return (
        f"WITH {settling(parts)} SELECT {held(parts)} AS held, {has_waiting(parts)} AS has_waiting"
    )
