"""Carrying out the sequels of outcomes, in plain ORM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..outcome import Outcome
from ..sequel import FollowUp
from .models import model


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
    jobs = model("Job").objects.using(connection.alias)
    for outcome in held:
        if outcome.sequel is not None and outcome.sequel.metadata is not None:
            jobs.filter(pk=outcome.job_id).update(metadata=outcome.sequel.metadata)
