"""Settling and claiming at once, in one operation of the dialect where it has one for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from .operations import Operations
from .outcome import Outcome
from .ready import Ready
from .records import ClaimedJob

#: The ids of the jobs whose claims were held, and the claims that were made.
Exchange = tuple[set[int], list[ClaimedJob]]

#: Of how many batches members may end in one operation of the dialect.
MOST_BATCHES = 4


def operation_for(
    connection: BaseDatabaseWrapper, dialect: Operations, outcomes: Sequence[Outcome]
) -> Callable[..., Exchange | None] | None:
    """Return the operation of the dialect that may settle ``outcomes`` and claim; ``None``: that
    takes several ones."""
    if not dialect.implements("settle_and_claim"):
        return None
    if Ready(connection, dialect).concerns(outcomes):
        # A job that becomes ready has to have its turn before any is claimed.
        return None
    if not any(outcome.has_sequel for outcome in outcomes):
        return dialect.exchange
    if dialect.implements("settle_members") and _may_end_members(outcomes):
        return dialect.exchange_members
    return None


def _may_end_members(outcomes: Sequence[Outcome]) -> bool:
    """Whether one operation may be able to end the members of batches that belong to these."""
    if len({outcome.job_id for outcome in outcomes}) < len(outcomes):
        return False  # Only one outcome of a job counts, and which one is not known yet.
    links = [each.link for each in outcomes if each.ends_member and each.link is not None]
    # Of many batches, one is likely to end, and the dialect to decline.
    return len({link.batch_id for link in links}) <= MOST_BATCHES and all(
        outcome.only_ends_member for outcome in outcomes
    )
