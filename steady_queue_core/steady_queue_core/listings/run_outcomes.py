"""What has become of the runs of recurring tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from ..dialects import portable
from ..models.job import MAX_ID
from .damage import ERRORS, is_damage
from .job_rows import read_jobs, state_of
from .states import ALL

#: What a run is called whose job is in a state.
WORDS = {
    "ready": "waiting",
    "scheduled": "scheduled",
    "blocked": "blocked",
    "waiting": "waiting",
    "running": "running",
    "failed": "failed",
    "finished": "finished",
}
NOT_ENQUEUED, NOT_KEPT = "not enqueued", "job no longer kept"


@dataclass(frozen=True)
class RunOutcome:
    """What has become of one run."""

    words: str
    #: How long its last attempt took, or has been running.
    duration: timedelta | None = None


def outcomes_of(
    jobs: QuerySet[Any], job_ids: Iterable[Any], *, are_all: bool
) -> dict[Any, RunOutcome]:
    """Return what has become of runs, by the ids of their jobs, as far as these are among ``jobs``.
    ``are_all``: a job that is not among them is gone. A few queries, however many runs."""
    given = {each for each in job_ids if type(each) is int and 0 < each <= MAX_ID}
    found = {job.pk: _outcome(job) for job in read_jobs(jobs, ALL, sorted(given))}
    gone = RunOutcome(NOT_KEPT if are_all else "")
    return {None: RunOutcome(NOT_ENQUEUED)} | {each: found.get(each, gone) for each in given}


def _outcome(job: Any) -> RunOutcome:
    try:
        state = state_of(job)
        claim = getattr(job, "claimedexecution", None) if state.name == "running" else None
        start = job.last_attempted_at if claim is None else claim.created_at
        end = job.finished_at if claim is None else job.present
        return RunOutcome(WORDS.get(state.name, state.name), _between(start, end))
    except ERRORS as error:
        if not is_damage(error):
            raise
        return RunOutcome("")


def _between(start: datetime | None, end: datetime | None) -> timedelta | None:
    return None if start is None or end is None else portable.aware(end) - portable.aware(start)
