"""Inserting or updating a row while a claim is held, in one statement."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from steady_queue_core.dialects import tables

from .clock import NOW_SQL

SAVE = f"""
INSERT INTO {{table}} (job_id, token, {{columns}})
SELECT job_id, token, {{values}} FROM {tables.CLAIMED}
WHERE job_id = %s AND token = %s
ON CONFLICT ({{key}}) DO UPDATE SET {{changes}}
RETURNING job_id"""


class FencedRow(NamedTuple):
    """A table that attempts store rows in."""

    table: str
    key: tuple[str, ...]
    #: The columns with values.
    columns: tuple[str, ...]
    #: The column with the present time.
    time: str


@cache
def statement(row: FencedRow, changed: tuple[str, ...]) -> str:
    """Return the statement that stores a row; of one that exists, it sets the ``changed`` columns.
    Its parameters are the values, the job and the token."""
    return SAVE.format(
        table=row.table,
        columns=", ".join([*row.columns, row.time]),
        values=", ".join(["%s"] * len(row.columns) + [NOW_SQL.replace("%", "%%")]),
        key=", ".join(row.key),
        changes=", ".join(f"{name} = excluded.{name}" for name in changed),
    )
