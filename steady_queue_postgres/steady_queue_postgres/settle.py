"""Ends claims: one statement, however many outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, Outcome, ProcessIdentity, QueueSelector

from .claim import Claimer, claim
from .permits import admit_locked, create, lock
from .prepared import fetch
from .settle_batch import Batch, held_ids
from .settle_sql import statement
from .transactions import planned_transaction


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    if not outcomes:
        return set()
    return cast("set[int]", _settle(connection, Batch(outcomes)))


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    if not outcomes:
        return set(), claim(connection, process, selector, limit)
    done = _settle_and_claim(connection, Batch(outcomes), process, selector, limit)
    return cast("tuple[set[int], list[ClaimedJob]]", done)


def settle_members(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]] | None:
    batch = Batch(outcomes, ends_members=True)
    return _settle_and_claim(connection, batch, process, selector, limit)


def _settle_and_claim(
    connection: BaseDatabaseWrapper,
    batch: Batch,
    process: ProcessIdentity,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]] | None:
    """Settle and claim; return ``None`` if the batch was declined, and nothing claimed."""
    if limit <= 0:
        held = _settle(connection, batch)
        return None if held is None else (held, [])
    if batch.any_returns_to_ready or (batch.keys and batch.any_is_blocked):
        # A statement does not see the rows that it has inserted itself.
        with planned_transaction(connection):
            held = _settle(connection, batch)
            return None if held is None else (held, claim(connection, process, selector, limit))
    claimer = Claimer.of(connection, selector)
    if not batch.keys:
        held, _, claims = claimer.exchange(batch, process, limit)
        return None if held is None else (held, claims)
    with planned_transaction(connection):
        missing = batch.keys - lock(connection, batch.keys)
        held, has_waiting, claims = claimer.exchange(batch, process, limit)
        if held is None:
            return None
        if has_waiting:
            # Nothing was claimed: an admitted job may come before all that are ready.
            create(connection, missing)
            admit_locked(connection, batch.keys)
            claims = claim(connection, process, selector, limit)
    return held, claims


def _settle(connection: BaseDatabaseWrapper, batch: Batch) -> set[int] | None:
    """End claims; return which were held, or ``None`` if the batch was declined."""
    if not batch.keys:
        return _end(connection, batch)[0]
    with planned_transaction(connection):
        missing = batch.keys - lock(connection, batch.keys)
        held, has_waiting = _end(connection, batch)
        if held is not None and (has_waiting or batch.any_is_blocked):
            create(connection, missing)
            admit_locked(connection, batch.keys)
    return held


def _end(connection: BaseDatabaseWrapper, batch: Batch) -> tuple[set[int] | None, bool]:
    """End claims; return which were held, and whether a job waits for a permit that has ended."""
    [(held, has_waiting)] = fetch(connection, statement(batch.parts), batch.values)
    return held_ids(held), has_waiting
