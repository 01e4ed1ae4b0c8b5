"""Jobs whose task this worker does not know, though a worker with newer code may.

Such a job is postponed and uses up no attempt. The time at which a worker first failed to find the
task is noted in the job's errors until a worker finds it or the backend's patience runs out.
"""

from __future__ import annotations

import json
import random
import re
from datetime import datetime, timedelta

from ...dialects import ClaimedJob, Outcome
from ...errors import UnregisteredTaskError
from ...logging import get_logger
from ...tasks.results import errors_of
from ...tasks.stored_errors import stored_errors
from ..base.log_context import about_job
from . import outcomes
from .error_text import Failure, appended, describe

logger = get_logger("steady_queue.worker")

#: Most tasks that are remembered as logged.
MOST_LOGGED = 1_000
#: Seconds until the job is tried again: a fraction of the time it has waited, within bounds.
SHORTEST, LONGEST, FRACTION = 1.0, 60.0, 0.25
#: Keeps jobs that were postponed together from coming back together.
JITTER = 0.25

_PATH = f"{UnregisteredTaskError.__module__}.{UnregisteredTaskError.__qualname__}"
_SINCE = re.compile(r"Left to workers that know it since (\S+)\.\Z")


class UnknownTasks:
    """Leaves jobs of unknown tasks to other workers, and logs so once for each task."""

    def __init__(self) -> None:
        #: Paths of the tasks that have been logged.
        self._logged: set[str] = set()

    def postpone(
        self,
        claim: ClaimedJob,
        error: UnregisteredTaskError,
        present: datetime,
        patience: timedelta,
    ) -> Outcome | None:
        """Return an outcome that leaves the job to other workers, or ``None`` if it has waited for
        longer than ``patience``."""
        outcome = _postponed(claim, error, present, patience)
        if outcome is None or claim.task_path in self._logged:
            return outcome
        if len(self._logged) > MOST_LOGGED:
            self._logged.clear()
        self._logged.add(claim.task_path)
        logger.warning(
            "Job %d and others of its task are left to other workers for up to %s: %s",
            claim.job_id,
            patience,
            error,
            extra=about_job("task.unknown", claim, error_type=type(error).__name__),
        )
        return outcome


def _postponed(
    claim: ClaimedJob, error: UnregisteredTaskError, present: datetime, patience: timedelta
) -> Outcome | None:
    known = errors_of(claim.errors)
    if claim.attempts and known and _is_unregistered(known[-1]) and not _since(known[-1]):
        return None  # An earlier attempt has already failed because of it.
    since, errors = (_since(known[-1]) if known else None), claim.errors
    if since is None:
        since, errors = present, appended(claim.errors, _note(error, present))
    waited = (present - since).total_seconds()
    left = patience.total_seconds() - waited
    if left <= 0:
        return None
    delay = max(SHORTEST, min(FRACTION * waited, LONGEST, left))
    delay *= random.uniform(1 - JITTER, 1 + JITTER)
    return outcomes.postponed(claim, errors, delay)


def left_since(errors: str | None) -> datetime | None:
    """Return since when workers have not found the task of a job, if they still have not."""
    known = errors_of(errors)
    return _since(known[-1]) if known else None


def without_note(claim: ClaimedJob) -> ClaimedJob:
    """Return the claim without the note that a worker did not know its task."""
    known = stored_errors(claim.errors)
    if not known or _since([*known[-1][:2]]) is None:
        return claim
    earlier = [each.stored for each in known[:-1]]
    return claim._replace(errors=json.dumps(earlier) if earlier else None)


def _note(error: UnregisteredTaskError, present: datetime) -> Failure:
    failure = describe(error)
    text = f"{failure.message}\nLeft to workers that know it since {present.isoformat()}."
    return failure._replace(traceback=text)


def _is_unregistered(known: list[str]) -> bool:
    return known[0] == _PATH


def _since(known: list[str]) -> datetime | None:
    """Return when a worker first failed to find the task, if this error is such a note."""
    said = _SINCE.search(known[1]) if _is_unregistered(known) else None
    try:
        since = datetime.fromisoformat(said[1]) if said else None
    except ValueError:
        return None
    return since if since and since.tzinfo else None
