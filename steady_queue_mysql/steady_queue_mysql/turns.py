"""Turns of fair queues: the rows of their keys are found one by one, and locked alone.

What others need is left alone: the gaps between keys, where they insert theirs. A statement that
inserts a key which exists would lock the gap before it, one that looks for a missing key with a
lock, under REPEATABLE READ, the gap where it belongs, and one that scans the table all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Arrival, Level, TurnKey, TurnRow, tables

from .batches import Statement
from .inline_tables import chunks
from .server import server_of
from .transactions import Transaction, is_serializable, run_in_transaction

OF_KEY = "t.queue_name = %s AND t.`rank` = {rank} AND t.`key` = %s"
OF_ID = "t.id = {id}"
# One by one, each by a unique index, whatever the optimizer knows of the table, or believes.
FIND = (
    f"(SELECT queue_name, `rank`, `key`, id, turn FROM {tables.TURNS} t WHERE {{of_row}}{{lock}})"
)
INSERT = f"""
INSERT INTO {tables.TURNS} (queue_name, `rank`, `key`, turn) VALUES {{rows}} {{overwriting}}"""
SAVE = f"""
UPDATE {tables.TURNS} t FORCE INDEX (PRIMARY) SET turn = CASE t.id {{cases}} END
WHERE t.id IN ({{ids}})"""

STEP = f"""
1e0 / COALESCE((SELECT weight FROM {tables.SHARES}
                WHERE queue_name = %s AND `key` = %s AND weight BETWEEN 1 AND 1000), {{weight}})"""
REACHED = f"""
COALESCE((SELECT IF(turn BETWEEN 0 AND 9007199254740992, turn, NULL)
          FROM {tables.READY} FORCE INDEX (steady_queue_ready_queue)
          WHERE queue_name = %s AND `rank` = {{rank}} ORDER BY turn LIMIT 1), {{job_id}})"""
READ = f"SELECT {REACHED}, {STEP}"
LATER = """
GREATEST(IF(turn BETWEEN 0 AND 9007199254740992, turn, 0) + {step}, {reached} + {step})"""
MOVE_ON = f"UPDATE {tables.TURNS} t SET turn = {LATER} WHERE {{of_row}}"
CREATE = f"""
INSERT INTO {tables.TURNS} (queue_name, `rank`, `key`, turn)
VALUES (%s, {{rank}}, %s, {{reached}} + {{step}})
ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), turn = {LATER}"""
CREATED = OF_ID.format(id="LAST_INSERT_ID()")
TAKE = f"""
UPDATE {tables.READY} r STRAIGHT_JOIN {tables.TURNS} t ON {{of_row}}
SET r.turn = t.turn - {{step}} + IF(t.turn - {{step}} = r.job_id, 0.001, 0)
WHERE r.job_id = {{job_id}}"""


def lock_turns(connection: BaseDatabaseWrapper, keys: Sequence[TurnKey]) -> dict[TurnKey, TurnRow]:
    return run_in_transaction(connection, lambda transaction: _lock(transaction, keys))


def save_turns(connection: BaseDatabaseWrapper, rows: Mapping[TurnKey, TurnRow]) -> None:
    statements = []
    for some in chunks(list(rows.values())):
        cases = " ".join(f"WHEN {int(row.id)} THEN {float(row.turn)!r}" for row in some)
        ids = ", ".join(str(int(row.id)) for row in some)
        statements.append(Statement(SAVE.format(cases=cases, ids=ids)))
    run_in_transaction(connection, lambda transaction: transaction.execute(statements))


def _lock(transaction: Transaction, keys: Sequence[TurnKey]) -> dict[TurnKey, TurnRow]:
    known = _known(transaction, keys)
    if transaction.sees_past:
        found = _find(transaction, known, lock=True)
    else:
        found = _find(transaction, dict.fromkeys(keys), lock=True)
    if missing := [key for key in keys if key not in found]:
        transaction.execute(_inserting(transaction, missing))
        created = _known(transaction, missing)
        found |= created
        found |= _find(transaction, {key: None for key in missing if key not in created}, lock=True)
    return found


def _known(transaction: Transaction, keys: Sequence[TurnKey]) -> dict[TurnKey, TurnRow]:
    """Return the rows of keys that exist, for a transaction that would lock the gap beside a row
    which it looks up by its key; nothing where reading locks as well."""
    if not transaction.sees_past or is_serializable(transaction.connection):
        return {}
    return _find(transaction, dict.fromkeys(keys))


def _of_row(key: TurnKey, row: TurnRow | None) -> tuple[str, list[str]]:
    """Return a condition, with its values: by the primary key, if that is known."""
    (queue_name, rank), text = key
    if row is not None:
        return OF_ID.format(id=int(row.id)), []
    return OF_KEY.format(rank=int(rank)), [queue_name, text]


def _find(
    transaction: Transaction, rows: Mapping[TurnKey, TurnRow | None], *, lock: bool = False
) -> dict[TurnKey, TurnRow]:
    """Return those rows that exist."""
    locking = " FOR UPDATE" if lock else ""
    statements = []
    for some in chunks([_of_row(key, row) for key, row in rows.items()], len):
        parts = [FIND.format(of_row=of_row, lock=locking) for of_row, _ in some]
        values = [value for _, values in some for value in values]
        statements.append(Statement(" UNION ALL ".join(parts), values))
    results = transaction.execute(statements) if statements else []
    found = [row for result in results for row in result.rows]
    return {
        (Level(str(name), int(rank)), str(key)): TurnRow(row_id, turn)
        for name, rank, key, row_id, turn in found
    }


def _inserting(transaction: Transaction, keys: Sequence[TurnKey]) -> list[Statement]:
    overwriting = server_of(transaction.connection).overwriting("`key`")
    statements = []
    for some in chunks(keys, len):
        rows = ", ".join(f"(%s, {int(level.rank)}, %s, 0)" for level, _ in some)
        values = [text for level, key in some for text in (level.queue_name, key)]
        statements.append(Statement(INSERT.format(rows=rows, overwriting=overwriting), values))
    return statements


def take_turn(connection: BaseDatabaseWrapper, arrival: Arrival) -> None:
    run_in_transaction(connection, lambda transaction: _take_turn(transaction, arrival))


def _take_turn(transaction: Transaction, arrival: Arrival) -> None:
    key = (Level(arrival.queue_name, arrival.rank), arrival.key)
    numbers = {
        "job_id": int(arrival.job_id),
        "rank": int(arrival.rank),
        "weight": repr(float(arrival.default_weight)),
    }
    of_key = [arrival.queue_name, arrival.key]
    step, of_step = STEP.format(**numbers), of_key
    reached, of_reached = REACHED.format(**numbers), [arrival.queue_name]
    known: TurnRow | None = None
    if transaction.sees_past:
        # A statement that writes would lock what it reads of the jobs that are ready.
        [read] = transaction.execute([Statement(READ.format(**numbers), of_reached + of_step)])
        reached, step = (repr(float(value)) for value in read.rows[0])
        of_reached, of_step = [], []
        known = _known(transaction, [key]).get(key)
    later = {"reached": reached, "step": step, **numbers}
    of_later = of_step + of_reached + of_step

    def taking(of_row: str, of_turn: Sequence[str]) -> Statement:
        return Statement(TAKE.format(step=step, of_row=of_row, **numbers), [*of_turn, *of_step * 2])

    if known is not None or not transaction.sees_past:
        of_row, of_turn = _of_row(key, known)
        moving = Statement(MOVE_ON.format(of_row=of_row, **later), of_later + of_turn)
        moved, _ = transaction.execute([moving, taking(of_row, of_turn)])
        if moved.affected:
            return
    creating = Statement(CREATE.format(**later), [*of_key, *of_reached, *of_step, *of_later])
    transaction.execute([creating, taking(CREATED, [])])
