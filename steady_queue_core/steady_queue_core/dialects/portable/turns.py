"""The rows of the keys of fair queues, which say what their next turns are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..records import Level, TurnKey, TurnRow
from .models import model, rows_of
from .own import lock_rows, upsert

#: What identifies the row of a key.
UNIQUE = ("queue_name", "rank", "key")


def lock_turns(connection: BaseDatabaseWrapper, keys: Sequence[TurnKey]) -> dict[TurnKey, TurnRow]:
    """Lock the rows of keys, in their order, creating those that are missing; return them."""
    # Written as they are: that locks them, and inserts those that are missing.
    upsert(connection, _models(dict.fromkeys(keys, 0.0)), UNIQUE, ["key"])
    found: dict[TurnKey, TurnRow] = {}
    for level, texts in _by_level(keys).items():
        rows = rows_of(connection, "Turn")
        rows = rows.filter(queue_name=level.queue_name, rank=level.rank, key__in=texts)
        # With a lock, to see what is newer than the snapshot of a caller's transaction.
        for row in lock_rows(connection, rows, wait=True):
            found[level, row.key] = TurnRow(row.pk, row.turn)
    return found


def save_turns(connection: BaseDatabaseWrapper, rows: Mapping[TurnKey, TurnRow]) -> None:
    """Store the next turns of keys whose rows are locked."""
    upsert(connection, _models({key: row.turn for key, row in rows.items()}), UNIQUE, ["turn"])


def _models(turns: Mapping[TurnKey, float]) -> list[Any]:
    return [
        model("Turn")(queue_name=level.queue_name, rank=level.rank, key=text, turn=turn)
        for (level, text), turn in turns.items()
    ]


def _by_level(keys: Iterable[TurnKey]) -> dict[Level, list[str]]:
    texts: dict[Level, list[str]] = {}
    for level, text in keys:
        texts.setdefault(level, []).append(text)
    return texts
