"""Inserting or updating a row while a claim is held, in one statement."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from steady_queue_core.dialects import tables

from .clock import NOW_SQL

# The claim is locked until the end of the transaction: it cannot be ended meanwhile.
SAVE = f"""
WITH held AS MATERIALIZED (
  SELECT job_id, token FROM {tables.CLAIMED}
  WHERE job_id = %(job_id)s AND token = %(token)s FOR UPDATE)
INSERT INTO {{table}} (job_id, token, {{columns}})
SELECT job_id, token, {{values}} FROM held
ON CONFLICT ({{key}}) DO UPDATE SET {{changes}}
RETURNING job_id"""


class FencedRow(NamedTuple):
    """A table that attempts store rows in."""

    table: str
    key: tuple[str, ...]
    #: The columns with values, and their types.
    columns: tuple[tuple[str, str], ...]
    #: The column with the present time.
    time: str


@cache
def statement(row: FencedRow, changed: tuple[str, ...]) -> str:
    """Return the statement that stores a row; of one that exists, it sets the ``changed``
    columns."""
    names = [name for name, _ in row.columns]
    values = [f"%({name})s::{type}" for name, type in row.columns]
    return SAVE.format(
        table=row.table,
        columns=", ".join([*names, row.time]),
        values=", ".join([*values, NOW_SQL]),
        key=", ".join(row.key),
        changes=", ".join(f"{name} = excluded.{name}" for name in changed),
    )
