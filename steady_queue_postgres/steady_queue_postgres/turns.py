"""Gives a job of a fair queue its turn, in one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Arrival, tables

from .prepared import fetch

# By a range of names, as everywhere: only one index has that order.
TAKE = f"""
WITH reached AS MATERIALIZED (
  SELECT COALESCE((SELECT CASE WHEN turn BETWEEN 0 AND 9007199254740992 THEN turn END
                   FROM {tables.READY} AS ready
                   WHERE queue_name >= %(queue_name)s::text AND queue_name <= %(queue_name)s::text
                         AND "rank" = %(rank)s::smallint
                   ORDER BY queue_name, "rank", turn LIMIT 1), %(job_id)s::bigint) AS turn,
         1 / COALESCE((SELECT weight FROM {tables.SHARES}
                       WHERE queue_name = %(queue_name)s::text AND "key" = %(key)s::text
                             AND weight BETWEEN 1 AND 1000), %(default_weight)s::float8) AS step
), moved AS (
  INSERT INTO {tables.TURNS} AS known (queue_name, "rank", "key", turn)
  SELECT %(queue_name)s::text, %(rank)s::smallint, %(key)s::text, turn + step FROM reached
  ON CONFLICT (queue_name, "rank", "key") DO UPDATE SET turn = GREATEST(
    CASE WHEN known.turn BETWEEN 0 AND 9007199254740992 THEN known.turn ELSE 0 END
    + (SELECT step FROM reached), excluded.turn)
  RETURNING turn
), taken AS (
  SELECT moved.turn - step AS turn FROM moved, reached
)
UPDATE {tables.READY} AS ready
SET turn = CASE WHEN taken.turn = ready.job_id THEN taken.turn + 0.001 ELSE taken.turn END
FROM taken WHERE ready.job_id = %(job_id)s::bigint RETURNING ready.job_id"""


def take_turn(connection: BaseDatabaseWrapper, arrival: Arrival) -> None:
    fetch(connection, TAKE, arrival._asdict())
