"""The parts of a statement that ends claims."""

from __future__ import annotations

from steady_queue_core.dialects import tables

from .clock import NOW_SQL
from .enqueue import TAKE_OVER, TAKE_OVER_DUE

# One text for all outcomes. A claim whose job somebody deleted ends here too, but was not held.
END = f"""
given AS MATERIALIZED (
  SELECT * FROM json_to_recordset(%(outcomes)s::json) AS outcome(
    job_id bigint, token bigint, ending text, queue_name text, "rank" smallint, attempts int,
    worker_ids text, errors text, started_at timestamptz, last_attempted_at timestamptz,
    return_value text, preserve boolean, delay bigint, exception_class text, message text)),
ended AS (
  DELETE FROM {tables.CLAIMED} AS claim USING given
  WHERE claim.job_id = given.job_id AND claim.token = given.token
  RETURNING given.*),
completed AS (
  UPDATE {tables.JOBS} AS job
  SET attempts = ended.attempts, token = ended.token, worker_ids = ended.worker_ids,
      errors = ended.errors, return_value = ended.return_value, started_at = ended.started_at,
      last_attempted_at = ended.last_attempted_at,
      finished_at = CASE WHEN ending <> 'retried' THEN {NOW_SQL} END
  FROM ended
  WHERE job.id = ended.job_id AND ending <> 'released' AND (ending <> 'finished' OR preserve)
  RETURNING ended.*),
erased AS (
  DELETE FROM {tables.JOBS} AS job USING ended
  WHERE job.id = ended.job_id AND ending = 'finished' AND NOT preserve
  RETURNING ended.job_id),
released AS (
  SELECT ended.* FROM ended JOIN {tables.JOBS} AS job ON job.id = ended.job_id
  WHERE ending = 'released'),
ready AS (
  INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL}
  FROM (SELECT * FROM completed WHERE ending = 'retried' AND delay <= 0
        UNION ALL SELECT * FROM released) AS again
  {TAKE_OVER}),
scheduled AS (
  INSERT INTO {tables.SCHEDULED} (job_id, queue_name, "rank", token, created_at, due_at)
  SELECT job_id, queue_name, "rank", token, {NOW_SQL},
         {NOW_SQL} + delay * interval '1 microsecond'
  FROM completed WHERE ending = 'retried' AND delay > 0
  {TAKE_OVER_DUE}),
failed AS (
  INSERT INTO {tables.FAILED} (job_id, created_at, exception_class, message)
  SELECT job_id, {NOW_SQL}, exception_class, message FROM completed WHERE ending = 'failed'
  ON CONFLICT (job_id) DO UPDATE SET created_at = excluded.created_at,
    exception_class = excluded.exception_class, message = excluded.message),
held AS (
  SELECT job_id FROM completed UNION ALL SELECT job_id FROM erased
  UNION ALL SELECT job_id FROM released)"""

SETTLE = f"WITH {END} SELECT job_id FROM held"

#: The ids of the claims that were held, as a JSON list, or null.
HELD = "(SELECT json_agg(job_id)::text FROM held)"
