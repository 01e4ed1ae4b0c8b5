"""Gives a job of a fair queue its turn, in one batch."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Arrival, tables

from .batches import Statement
from .transactions import Transaction, reads_committed, run_in_transaction

STEP = f"""
1e0 / COALESCE((SELECT weight FROM {tables.SHARES}
                WHERE queue_name = %s AND `key` = %s AND weight BETWEEN 1 AND 1000), {{weight}})"""
REACHED = f"""
COALESCE((SELECT IF(turn BETWEEN 0 AND 9007199254740992, turn, NULL)
          FROM {tables.READY} FORCE INDEX (steady_queue_ready_queue)
          WHERE queue_name = %s AND `rank` = {{rank}} ORDER BY turn LIMIT 1), {{job_id}})"""
READ = f"SELECT {REACHED}, {STEP}"
# The columns of a derived table may be named in both parts; VALUES() is going out of use in MySQL,
# and MariaDB does not know what has come instead.
MOVE_ON = f"""
INSERT INTO {tables.TURNS} (queue_name, `rank`, `key`, turn)
SELECT %s, {{rank}}, %s, new.reached + new.step FROM (SELECT {{reached}} AS reached,
                                                             {{step}} AS step) AS new
ON DUPLICATE KEY UPDATE turn = GREATEST(
  IF({tables.TURNS}.turn BETWEEN 0 AND 9007199254740992, {tables.TURNS}.turn, 0) + new.step,
  new.reached + new.step)"""
TAKE = f"""
UPDATE {tables.READY} r STRAIGHT_JOIN {tables.TURNS} t
ON t.queue_name = %s AND t.`rank` = {{rank}} AND t.`key` = %s
SET r.turn = t.turn - {{step}} + IF(t.turn - {{step}} = r.job_id, 0.001, 0)
WHERE r.job_id = {{job_id}}"""


def take_turn(connection: BaseDatabaseWrapper, arrival: Arrival) -> None:
    run_in_transaction(connection, lambda transaction: _take_turn(transaction, arrival))


def _take_turn(transaction: Transaction, arrival: Arrival) -> None:
    numbers = {
        "job_id": int(arrival.job_id),
        "rank": int(arrival.rank),
        "weight": repr(float(arrival.default_weight)),
    }
    of_key = [arrival.queue_name, arrival.key]
    step, of_step = STEP.format(**numbers), of_key
    reached, of_reached = REACHED.format(**numbers), [arrival.queue_name]
    if transaction.joined and not reads_committed(transaction.connection):
        # A statement that writes would lock what it reads of the jobs that are ready.
        [read] = transaction.execute([Statement(READ.format(**numbers), of_reached + of_step)])
        reached, step = (repr(float(value)) for value in read.rows[0])
        of_reached, of_step = [], []
    moving = MOVE_ON.format(reached=reached, step=step, **numbers)
    taking = TAKE.format(step=step, **numbers)
    transaction.execute(
        [
            Statement(moving, of_key + of_reached + of_step),
            Statement(taking, of_key + of_step + of_step),
        ]
    )
