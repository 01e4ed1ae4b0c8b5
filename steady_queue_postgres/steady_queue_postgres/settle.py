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
from .prepared import fetch
from .settle_batch import Batch
from .settle_sql import statement
from .transactions import planned_transaction


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    if not outcomes:
        return set()
    batch, keys = Batch(outcomes), limited_keys(outcomes)
    if not keys:
        return _settle(connection, batch)[0]
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, has_waiting = _settle(connection, batch)
        if has_waiting or batch.any_is_blocked:
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
    batch, keys = Batch(outcomes), limited_keys(outcomes)
    if batch.any_returns_to_ready or (keys and batch.any_is_blocked):
        # A statement does not see the rows that it has inserted itself.
        with planned_transaction(connection):
            held = settle(connection, outcomes)
            return held, claim(connection, process, selector, limit)
    claimer = Claimer.of(connection, selector)
    if not keys:
        held, _, claims = claimer.exchange(batch, process, limit)
        return held, claims
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, has_waiting, claims = claimer.exchange(batch, process, limit)
        if has_waiting:
            # Nothing was claimed: an admitted job may come before all that are ready.
            create(connection, missing)
            admit_locked(connection, keys)
            claims = claim(connection, process, selector, limit)
    return held, claims


def _settle(connection: BaseDatabaseWrapper, batch: Batch) -> tuple[set[int], bool]:
    """End claims; return which were held, and whether a job waits for a permit that has ended."""
    [(held, has_waiting)] = fetch(connection, statement(batch.parts), batch.values)
    return set(json.loads(held or "[]")), has_waiting
