"""The starts of jobs with rate limits: asked for after the claim, and good for a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import DataError, IntegrityError

from ...arguments import DEFAULT_LIMITS, TaskArgumentError
from ...dialects import ClaimedJob, Outcome, Sequel
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...rates.gate import Answer, Ask, Gate
from ...tasks.metadata import JobMetadata
from ...tasks.stored_payloads import limits_of
from ..base.database import QueueDatabase, Unavailable
from ..base.system import lease_clock
from . import outcomes
from .attempt import MOST_ADDED

logger = get_logger("steady_queue.worker")

#: Seconds until jobs ask again whose rows the database has refused.
REFUSAL_PAUSE = 1.0


class RatedStarts:
    """Which of a worker's jobs with rate limits may start, and until when."""

    def __init__(self) -> None:
        #: By job and token, on the lease clock. Filled by the main thread, emptied by any.
        self._until: dict[tuple[int, int], float] = {}

    def not_yet(self, claims: Sequence[ClaimedJob], database: QueueDatabase) -> dict[int, Outcome]:
        """Ask for the starts of those of ``claims`` that have a rate limit. Return the outcomes of
        those that must not start, by their ids. Main thread only."""
        # Most jobs have no metadata.
        rated = [claim for claim in claims if claim.metadata is not None and claim.has_rate]
        if not rated:
            return {}
        self._forget_late()
        asks = [_ask_of(claim) for claim in rated]
        try:
            answers = database.run(
                lambda connection, dialect: Gate(connection, dialect, lease_clock).ask(asks)
            )
        except Unavailable:
            return {claim.job_id: outcomes.released(claim) for claim in rated}
        except (DataError, IntegrityError):
            log_internal_error(
                logger,
                "Starts of jobs with rate limits were refused",
                extra=about("worker.starts_refused"),
            )
            answers = {}
        found = {}
        for claim in rated:
            answer = answers.get(claim.job_id)
            if answer is None:
                found[claim.job_id] = outcomes.postponed(claim, claim.errors, REFUSAL_PAUSE)
            elif answer.until is None:
                found[claim.job_id] = _sent_away(claim, answer)
            else:
                self._until[claim.job_id, claim.token] = answer.until
        return found

    def may_start(self, claim: ClaimedJob) -> bool:
        """Whether a job may start at this moment. Any thread."""
        until = self._until.pop((claim.job_id, claim.token), None)
        if until is None:
            return not claim.has_rate
        return lease_clock() < until

    def _forget_late(self) -> None:
        """Forget the jobs that were given back before they started."""
        present = lease_clock()
        for key, until in list(self._until.items()):
            if until < present:
                self._until.pop(key, None)


def _ask_of(claim: ClaimedJob) -> Ask:
    metadata = JobMetadata.read(claim.metadata)
    rate = metadata.rate_limit
    assert rate is not None
    return Ask(claim.job_id, rate, metadata.slot_of(claim.attempts))


def _sent_away(claim: ClaimedJob, answer: Answer) -> Outcome:
    """Return the outcome of a job that comes back for its slot."""
    outcome = outcomes.postponed(claim, claim.errors, answer.delay)
    metadata = JobMetadata.read(claim.metadata)
    slot = (answer.slot, claim.attempts)
    if metadata.slot == slot:
        return outcome
    limits = limits_of(claim.backend_name) or DEFAULT_LIMITS
    # What the caller has passed may be as large as they allow.
    limits = replace(limits, max_bytes=limits.max_bytes + MOST_ADDED)
    try:
        text = replace(metadata, slot=slot).text(limits)
    except TaskArgumentError:  # They have changed since: the job loses its place.
        return outcome
    return outcome._replace(sequel=Sequel(metadata=text))
