"""Carrying out the sequels of outcomes, in plain ORM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from ...features.retention.period import Period
from ..outcome import Outcome
from ..sequel import FollowUp
from .clock import storable
from .models import model, rows_of
from .own import present_time, upsert


def with_one_outcome_a_job(outcomes: Sequence[Outcome]) -> Iterator[list[Outcome]]:
    """Split ``outcomes`` so that no job comes twice in a part: of two outcomes of one job, what a
    settlement returns does not tell which one was held."""
    rest = list(outcomes)
    while rest:
        first = {outcome.job_id: outcome for outcome in reversed(rest)}
        yield list(first.values())[::-1]
        rest = [outcome for outcome in rest if first[outcome.job_id] is not outcome]


def follow_ups_of(held: Sequence[Outcome]) -> list[FollowUp]:
    """Return the jobs to insert after these outcomes, which were stored."""
    return [each for outcome in held if outcome.sequel for each in outcome.sequel.follow_ups]


def write_metadata(connection: BaseDatabaseWrapper, held: Sequence[Outcome]) -> None:
    """Store the new metadata of the jobs that still exist."""
    jobs = rows_of(connection, "Job")
    for outcome in held:
        if outcome.sequel is not None and outcome.sequel.metadata is not None:
            jobs.filter(pk=outcome.job_id).update(metadata=outcome.sequel.metadata)


def periods_of(held: Sequence[Outcome]) -> dict[int, Period]:
    """Return how long the jobs are kept that have ended, and say so themselves."""
    return {
        outcome.job_id: outcome.sequel.retention
        for outcome in held
        if outcome.sequel is not None and outcome.sequel.retention is not None
        if outcome.completes_job and not outcome.deletes_job
    }


def keep(connection: BaseDatabaseWrapper, periods: Mapping[int, Period]) -> None:
    """Store how long these jobs, which have just ended, are kept, in the order of their ids."""
    if not periods:
        return
    present = present_time(connection)
    rows = [
        model("Retention")(
            job_id=job_id,
            expires_at=storable(present + period) if isinstance(period, timedelta) else None,
        )
        for job_id, period in sorted(periods.items())
    ]
    upsert(connection, rows, ["job"], ["expires_at"])
