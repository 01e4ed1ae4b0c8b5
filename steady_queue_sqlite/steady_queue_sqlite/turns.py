"""Gives a job of a fair queue its turn, under the one write lock."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Arrival, tables

# SQLite stores a value of any type in any column.
VALID = "CASE WHEN typeof({0}) IN ('integer', 'real') AND {0} BETWEEN {1} AND {2} THEN {0} END"
VALID_TURN = VALID.format("turn", 0, 2**53)
VALID_WEIGHT = VALID.format("weight", 1, 1000)

STEP = f"""
1.0 / COALESCE((SELECT {VALID_WEIGHT} FROM {tables.SHARES}
                WHERE queue_name = %s AND key = %s), CAST(%s AS REAL))"""
MOVE_ON = f"""
INSERT INTO {tables.TURNS} (queue_name, "rank", key, turn)
SELECT %s, %s, %s,
       COALESCE((SELECT {VALID_TURN} FROM {tables.READY} INDEXED BY steady_queue_ready_queue
                 WHERE queue_name = %s AND "rank" = %s ORDER BY turn LIMIT 1), %s) + {STEP}
WHERE true
ON CONFLICT (queue_name, "rank", key) DO UPDATE
SET turn = max(COALESCE({VALID.format(f"{tables.TURNS}.turn", 0, 2**53)}, 0) + {STEP},
               excluded.turn)
RETURNING turn - {STEP}"""
TAKE = f"UPDATE {tables.READY} SET turn = %s WHERE job_id = %s"


def take_turn(connection: BaseDatabaseWrapper, arrival: Arrival) -> None:
    job_id, queue_name, rank, key, default_weight = arrival
    step = (queue_name, key, default_weight)
    with connection.cursor() as cursor:
        cursor.execute(
            MOVE_ON, [queue_name, rank, key, queue_name, rank, job_id, *step, *step, *step]
        )
        [turn] = cursor.fetchone()
        cursor.execute(TAKE, [turn + 0.001 if turn == job_id else turn, job_id])
