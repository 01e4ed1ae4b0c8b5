"""Claiming ready jobs: one statement, alone or together with the settlement of earlier claims."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, Outcome, ProcessIdentity, QueueSelector

from .claimer import Claimer
from .permits import admit_locked, create, lock
from .plans import Plans
from .settle import any_is_blocked, any_returns_to_ready, limited_keys, settle
from .transactions import planned_transaction


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    if limit <= 0:
        return []
    claimer = Claimer.of(connection, selector)
    # Where the claim has to be planned anew, it costs more than a look.
    if claimer.looks_first and Plans.of(connection) is None and not claimer.finds_any(process):
        return []
    return claimer.exchange((), process, limit)[1]


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
        # A statement does not see what it has inserted itself.
        with planned_transaction(connection):
            held = settle(connection, outcomes)
            return held, claim(connection, process, selector, limit)
    claimer = Claimer.of(connection, selector)
    if not keys:
        return claimer.exchange(outcomes, process, limit)
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, claims = claimer.exchange(outcomes, process, limit)
        if claimer.somebody_waits:
            # Then nothing was claimed: who is let in may come before all that are ready.
            create(connection, missing)
            admit_locked(connection, keys)
            claims = claim(connection, process, selector, limit)
    return held, claims
