"""The statements that insert jobs with their first executions."""

from __future__ import annotations

from steady_queue_core.dialects import tables

from .clock import NOW_SQL, seconds
from .conflicts import REPLACE_BLOCKED, REPLACE_READY, REPLACE_SCHEDULED
from .wakeup import PG_NOTIFY

#: Whether a new job is not due yet. An instant in the past is stored as well: the caller asked for
#: it.
LATER = "COALESCE(scheduled_at > enqueued_at, false)"

_READY = f"""
INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
SELECT id, queue_name, "rank", 0, enqueued_at, id FROM job"""

_ONE = f"""
WITH job AS (
  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                             attempts, token, enqueued_at)
  VALUES (%(queue_name)s, %(task_path)s, %(backend_name)s, %(rank)s, %(arguments)s,
          %(max_attempts)s, 0, 0, {NOW_SQL})
  RETURNING id, queue_name, "rank", enqueued_at
), ready AS (
  {_READY}
  {REPLACE_READY}
) SELECT ARRAY[id] AS job_ids, {seconds(NOW_SQL)} AS enqueued_at{{notification}} FROM job"""

_ALIKE = f"""
WITH job AS (
  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                             attempts, token, enqueued_at)
  SELECT %(queue_name)s::text, %(task_path)s::text, %(backend_name)s::text, %(rank)s::smallint,
         arguments, %(max_attempts)s::smallint, 0, 0, {NOW_SQL}
  FROM json_array_elements_text(%(arguments)s::json) WITH ORDINALITY AS call(arguments, ordinal)
  ORDER BY ordinal
  RETURNING id, queue_name, "rank", enqueued_at
), ready AS (
  {_READY}
  {REPLACE_READY}
) SELECT array_agg(id) AS job_ids, {seconds(NOW_SQL)} AS enqueued_at{{notification}} FROM job"""

_NOTIFICATION = f", {PG_NOTIFY} AS notification"

#: For one job that is ready at once, and the same with a notification for listeners.
ENQUEUE_ONE = _ONE.format(notification="")
ENQUEUE_ONE_AND_NOTIFY = _ONE.format(notification=_NOTIFICATION)

#: For several jobs that are ready at once and differ in their arguments alone. What they have in
#: common is sent once: most of the time goes into reading what is given.
ENQUEUE_ALIKE = _ALIKE.format(notification="")
ENQUEUE_ALIKE_AND_NOTIFY = _ALIKE.format(notification=_NOTIFICATION)

_DUE_AT = f"""
CASE WHEN delay IS NULL THEN run_at
     WHEN delay > 0 THEN {NOW_SQL} + delay * interval '1 microsecond' END"""

# One parameter for all jobs: a text is sent and read faster than an array for each column.
ENQUEUE = f"""
WITH given AS (
  SELECT *, {_DUE_AT} AS due_at FROM json_to_recordset(%(jobs)s::json) AS job(
    ordinal int, queue_name text, "rank" smallint, task_path text, backend_name text,
    arguments text, max_attempts smallint, run_at timestamptz, delay bigint, metadata text)
), job AS (
  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                             attempts, token, enqueued_at, scheduled_at, metadata)
  SELECT queue_name, task_path, backend_name, "rank", arguments, max_attempts, 0, 0, {NOW_SQL},
         due_at, metadata
  FROM given ORDER BY ordinal
  RETURNING id, queue_name, "rank", enqueued_at, scheduled_at
), ready AS (
  {_READY} WHERE NOT {LATER}
  {REPLACE_READY}
), scheduled AS (
  INSERT INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at)
  SELECT id, queue_name, "rank", 0, enqueued_at, scheduled_at FROM job
  WHERE {LATER}
  {REPLACE_SCHEDULED}
) SELECT array_agg(id) AS job_ids, {seconds(NOW_SQL)} AS enqueued_at FROM job"""

#: For jobs whose executions the core inserts.
ENQUEUE_WAITING = f"""
WITH job AS (
  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                             attempts, token, enqueued_at, scheduled_at, concurrency_key,
                             concurrency_limit, concurrency_duration, concurrency_discards,
                             metadata)
  SELECT queue_name, task_path, backend_name, "rank", arguments, max_attempts, 0, 0, {NOW_SQL},
         run_at, "key", "to", duration * interval '1 microsecond', COALESCE(discards, false),
         metadata
  FROM json_to_recordset(%(jobs)s::json) AS job(
    ordinal int, queue_name text, "rank" smallint, task_path text, backend_name text,
    arguments text, max_attempts smallint, run_at timestamptz, "key" text, "to" int,
    duration bigint, discards boolean, metadata text)
  ORDER BY ordinal
  RETURNING id
) SELECT array_agg(id) AS job_ids, {seconds(NOW_SQL)} AS enqueued_at FROM job"""

# At most one job of each key takes a permit here, so that the semaphore's row alone decides. It is
# locked even if no permit is left: a transaction that ends a permit must not look for waiting jobs
# before this one waits. If the limit has changed while no permit is left, the row does not say how
# many jobs hold one: the jobs are admitted afterwards. The same goes for a semaphore that a manual
# edit has deleted while permits are held: it is created again with a value below 0. Permits, which
# may be very many, are counted only if there is none; one that goes at this moment is created again
# with a value below 0, too. Semaphores are looked up in scalar subqueries: for EXISTS, or a join, a
# planner may read all of them.
ENQUEUE_LIMITED = f"""
WITH given AS MATERIALIZED (
  SELECT job.*, moment.due_at, "key" IS NOT NULL AND due_at IS NULL AS is_limited
  FROM json_to_recordset(%(jobs)s::json) AS job(
    ordinal int, queue_name text, "rank" smallint, task_path text, backend_name text,
    arguments text, max_attempts smallint, run_at timestamptz, delay bigint,
    "key" text, "to" int, duration bigint, discards boolean, metadata text),
  LATERAL (SELECT CASE WHEN {_DUE_AT} > {NOW_SQL} THEN {_DUE_AT} END AS due_at) AS moment
), touched AS (
  INSERT INTO {tables.SEMAPHORES} AS known ("key", value, "limit")
  SELECT "key", CASE
    WHEN (SELECT true FROM {tables.SEMAPHORES} AS existing WHERE existing."key" = given."key")
    THEN -1
    ELSE "to" - 1 - (SELECT count(*) FROM {tables.PERMITS} AS permit
                     WHERE permit."key" = given."key")
  END, "to"
  FROM given WHERE is_limited AND %(takes)s ORDER BY "key" COLLATE "C"
  ON CONFLICT ("key") DO UPDATE
  SET value = known.value - known."limit" + excluded."limit" - 1, "limit" = excluded."limit"
  WHERE known.value > 0 AND known.value - known."limit" + excluded."limit" > 0
  RETURNING "key", value
), taken AS MATERIALIZED (
  SELECT "key" FROM touched WHERE value >= 0
), doubtful AS MATERIALIZED (
  SELECT ordinal, "key", "to" FROM given
  WHERE is_limited AND "key" NOT IN (SELECT "key" FROM taken)
        AND (NOT %(takes)s OR "key" IN (SELECT "key" FROM touched)
             OR "to" <> (SELECT "limit" FROM {tables.SEMAPHORES} AS known
                         WHERE known."key" = given."key"))
), refused AS MATERIALIZED (
  SELECT ordinal FROM given
  WHERE is_limited AND discards AND "key" NOT IN (SELECT "key" FROM taken)
        AND ordinal NOT IN (SELECT ordinal FROM doubtful)
), job AS (
  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                             attempts, token, enqueued_at, scheduled_at, concurrency_key,
                             concurrency_limit, concurrency_duration, concurrency_discards,
                             metadata)
  SELECT queue_name, task_path, backend_name, "rank", arguments, max_attempts, 0, 0, {NOW_SQL},
         COALESCE(due_at, run_at), "key", "to", duration * interval '1 microsecond',
         COALESCE(discards, false), metadata
  FROM given WHERE ordinal NOT IN (SELECT ordinal FROM refused) ORDER BY ordinal
  RETURNING id, queue_name, "rank", enqueued_at, scheduled_at, concurrency_key,
            concurrency_key IS NULL OR concurrency_key IN (SELECT "key" FROM taken) AS may_run
), ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
  SELECT id, queue_name, "rank", 0, enqueued_at, id FROM job WHERE NOT {LATER} AND may_run
  {REPLACE_READY}
), permit AS (
  INSERT INTO {tables.PERMITS} (job_id, "key")
  SELECT id, concurrency_key FROM job
  WHERE NOT {LATER} AND may_run AND concurrency_key IS NOT NULL
  ON CONFLICT (job_id) DO UPDATE SET "key" = excluded."key"
), blocked AS (
  INSERT INTO {tables.BLOCKED} (job_id, queue_name, "rank", token, created_at, concurrency_key)
  SELECT id, queue_name, "rank", 0, enqueued_at, concurrency_key FROM job
  WHERE NOT {LATER} AND NOT may_run
  {REPLACE_BLOCKED}
), scheduled AS (
  INSERT INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at,
                                  concurrency_key)
  SELECT id, queue_name, "rank", 0, enqueued_at, scheduled_at, concurrency_key FROM job
  WHERE {LATER}
  {REPLACE_SCHEDULED}
)
SELECT {seconds(NOW_SQL)} AS enqueued_at, ARRAY(SELECT id FROM job) AS job_ids,
       ARRAY(SELECT ordinal FROM refused) AS refused,
       (SELECT json_object_agg("key", "to" ORDER BY ordinal)::text FROM doubtful) AS doubtful"""
