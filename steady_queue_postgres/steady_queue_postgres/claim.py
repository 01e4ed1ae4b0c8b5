"""Claiming ready jobs: one statement, alone or together with the settlement of earlier claims."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import ClaimedJob, Outcome, QueueSelector

from .claimer import Claimer
from .plans import Plans
from .settle import any_becomes_ready, settle
from .transactions import transaction


def claim(
    connection: BaseDatabaseWrapper, process_id: int, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    if limit <= 0:
        return []
    claimer = Claimer.of(connection, selector)
    # Where the claim has to be planned anew, it costs more than a look.
    if claimer.idle and Plans.of(connection) is None and not claimer.finds_any(process_id):
        return []
    return claimer.exchange((), process_id, limit)[1]


def settle_and_claim(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    process_id: int,
    selector: QueueSelector,
    limit: int,
) -> tuple[set[int], list[ClaimedJob]]:
    if not outcomes or limit <= 0:
        return settle(connection, outcomes), claim(connection, process_id, selector, limit)
    if any_becomes_ready(outcomes):
        # A statement does not see what it has inserted itself.
        with transaction(connection):
            held = settle(connection, outcomes)
            return held, claim(connection, process_id, selector, limit)
    return Claimer.of(connection, selector).exchange(outcomes, process_id, limit)
