"""Settling: the stages of a settlement with sequels, in the order of the locks that they take.

Most outcomes end a claim and nothing else: those settle in one operation of the dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db.backends.base.base import BaseDatabaseWrapper

from .enqueueing import enqueue_with_outcome
from .joins import Joins
from .operations import Operations
from .outcome import Outcome
from .portable.checkpoints import end_checkpoints, last_progress
from .portable.held_rows import upsert_held
from .portable.sequels import (
    follow_ups_of,
    keep,
    periods_of,
    with_one_outcome_a_job,
    write_metadata,
)
from .portable.steps import begun_sleeps, end_steps
from .unique_keys import UniqueKeys, keys_of


@dataclass(slots=True)
class Settling:
    """Outcomes that one transaction settles."""

    connection: BaseDatabaseWrapper
    dialect: Operations
    outcomes: Sequence[Outcome]
    #: The unique keys that were locked for it.
    keys: set[str] = field(default_factory=set)
    #: Those of the outcomes whose claims were held.
    held: list[Outcome] = field(default_factory=list)


Stage = Callable[[Settling], None]


def lock_keys(settling: Settling) -> None:
    """Lock the unique keys that have to come before the claims."""
    settling.keys = keys_of(settling.outcomes)
    UniqueKeys(settling.connection, settling.dialect).lock(settling.keys)


def end_claims(settling: Settling) -> None:
    """End the claims that are held, and give turns to the jobs that are ready then."""
    for part in with_one_outcome_a_job(settling.outcomes):
        ids = settling.dialect.end_claims(settling.connection, part)
        settling.held += [outcome for outcome in part if outcome.job_id in ids]


def store_metadata(settling: Settling) -> None:
    """Store the metadata that attempts have changed."""
    write_metadata(settling.connection, settling.held)


def keep_jobs(settling: Settling) -> None:
    """Store how long the jobs are kept that have ended."""
    keep(settling.connection, periods_of(settling.held))


def settle_checkpoints(settling: Settling) -> None:
    """Store the last progress; delete the checkpoints of jobs that have succeeded."""
    upsert_held(settling.connection, last_progress(settling.held))
    end_checkpoints(settling.connection, settling.held)


def settle_steps(settling: Settling) -> None:
    """Store the sleeps that have begun; delete the steps of jobs that are deleted."""
    upsert_held(settling.connection, [step.row for step in begun_sleeps(settling.held)])
    end_steps(settling.connection, settling.held)


def end_keys(settling: Settling) -> None:
    """Free, or keep, the unique keys of the jobs that have ended."""
    UniqueKeys(settling.connection, settling.dialect).end(settling.held, settling.keys)


def enqueue_follow_ups(settling: Settling) -> None:
    """Insert the jobs that follow the outcomes."""
    if follow_ups := follow_ups_of(settling.held):
        jobs = [each.job for each in follow_ups]
        stored = enqueue_with_outcome(settling.connection, settling.dialect, jobs)
        for follow_up, new in zip(follow_ups, stored, strict=True):
            follow_up.stored = new


def end_members(settling: Settling) -> None:
    """End the members of batches whose jobs have ended, after the jobs that the last one may have
    added to its batch; move on what has waited for them."""
    ending = [outcome for outcome in settling.held if outcome.ends_member]
    ended = {outcome.job_id: outcome.member_state for outcome in ending}
    links = [outcome.link for outcome in ending if outcome.link is not None]
    if any(link.has_dependents for link in links):
        settling.dialect.end_members(settling.connection, ended)
    elif ended:
        joins = Joins(settling.connection, settling.dialect)
        joins.end_alone(ended, {link.batch_id for link in links})
        joins.ring()


SETTLING: tuple[Stage, ...] = (
    lock_keys,
    end_claims,
    store_metadata,
    keep_jobs,
    settle_checkpoints,
    settle_steps,
    end_keys,
    enqueue_follow_ups,
    end_members,
)


def settle(
    connection: BaseDatabaseWrapper, dialect: Operations, outcomes: Sequence[Outcome]
) -> set[int]:
    """Settle outcomes with their sequels; return the ids of the jobs whose claims were held."""
    settling = Settling(connection, dialect, outcomes)
    with dialect.transaction(connection):
        for stage in SETTLING:
            stage(settling)
    if follow_ups := follow_ups_of(settling.held):
        queue_names = dict.fromkeys(each.job.queue_name for each in follow_ups)
        dialect.ring_after_commit(connection, list(queue_names))
    return {outcome.job_id for outcome in settling.held}
