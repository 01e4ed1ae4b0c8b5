"""Ends claims: one statement, however many outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    ClaimedJob,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    limited_keys,
)

from .claim import Claimer, claim
from .permits import admit_locked, create, lock
from .prepared import fetch_named
from .settle_sql import any_is_blocked, any_returns_to_ready, parts_of, statement, to_json
from .transactions import planned_transaction


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    if not outcomes:
        return set()
    keys = limited_keys(outcomes)
    if not keys:
        return _settle(connection, outcomes)[0]
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, has_waiting = _settle(connection, outcomes)
        if has_waiting or any_is_blocked(outcomes):
            create(connection, missing)
            admit_locked(connection, keys)
    return held


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    if not outcomes or limit <= 0:
        return settle(connection, outcomes), claim(connection, process, selector, limit)
    keys = limited_keys(outcomes)
    if any_returns_to_ready(outcomes) or (keys and any_is_blocked(outcomes)):
        # A statement does not see the rows that it has inserted itself.
        with planned_transaction(connection):
            held = settle(connection, outcomes)
            return held, claim(connection, process, selector, limit)
    claimer = Claimer.of(connection, selector)
    if not keys:
        held, _, claims = claimer.exchange(outcomes, process, limit)
        return held, claims
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, has_waiting, claims = claimer.exchange(outcomes, process, limit)
        if has_waiting:
            # Nothing was claimed: an admitted job may come before all that are ready.
            create(connection, missing)
            admit_locked(connection, keys)
            claims = claim(connection, process, selector, limit)
    return held, claims


def _settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> tuple[set[int], bool]:
    """End claims; return which were held, and whether a job waits for a permit that has ended."""
    values = {"outcomes": to_json(outcomes)}
    [row] = fetch_named(connection, statement(parts_of(outcomes)), values)
    return set(json.loads(row["held"] or "[]")), row["has_waiting"]
