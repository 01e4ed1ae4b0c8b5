"""Jobs whose task a worker does not know: others may, such as those with newer code.

Such a job is put off, and uses up no attempt. Since when workers have met it in vain is kept among
its errors, until one finds its task, or the backend's patience is over.
"""

from __future__ import annotations

import json
import random
import re
from datetime import datetime, timedelta

from ...dialects import ClaimedJob, Outcome
from ...errors import UnregisteredTaskError
from ...tasks.results import errors_of
from . import outcomes
from .error_text import Failure, appended, describe

#: Seconds between two looks at a job: a part of the time that it has waited, within bounds.
SHORTEST, LONGEST, PART = 1.0, 60.0, 0.25
#: Those who were put off together shall not come back together.
JITTER = 0.25

_PATH = f"{UnregisteredTaskError.__module__}.{UnregisteredTaskError.__qualname__}"
_SINCE = re.compile(r"Left to workers that know it since (\S+)\.\Z")


def put_off(
    claim: ClaimedJob, error: UnregisteredTaskError, present: datetime, patience: timedelta
) -> Outcome | None:
    """Return the outcome that leaves a job to other workers; ``None``: long enough."""
    known = errors_of(claim.errors)
    if claim.attempts and known and _is_unregistered(known[-1]) and not _since(known[-1]):
        return None  # An attempt was charged for it already.
    since, errors = (_since(known[-1]) if known else None), claim.errors
    if since is None:
        since, errors = present, appended(claim.errors, _mark(error, present))
    waited = (present - since).total_seconds()
    left = patience.total_seconds() - waited
    if left <= 0:
        return None
    delay = max(SHORTEST, min(PART * waited, LONGEST, left))
    delay *= random.uniform(1 - JITTER, 1 + JITTER)
    return outcomes.postponed(claim, errors, delay)


def found(claim: ClaimedJob) -> ClaimedJob:
    """Return the claim without the note that its task was not known elsewhere."""
    known = errors_of(claim.errors)
    if not known or _since(known[-1]) is None:
        return claim
    return claim._replace(errors=json.dumps(known[:-1]) if known[:-1] else None)


def _mark(error: UnregisteredTaskError, present: datetime) -> Failure:
    failure = describe(error)
    text = f"{failure.message}\nLeft to workers that know it since {present.isoformat()}."
    return failure._replace(traceback=text)


def _is_unregistered(known: list[str]) -> bool:
    return known[0] == _PATH


def _since(known: list[str]) -> datetime | None:
    """Return since when workers have met a job in vain, if that is what an error says."""
    said = _SINCE.search(known[1]) if _is_unregistered(known) else None
    try:
        since = datetime.fromisoformat(said[1]) if said else None
    except ValueError:
        return None
    return since if since and since.tzinfo else None
