"""What becomes of one claim of a dead process."""

from __future__ import annotations

from typing import NamedTuple

from ...configured_backends import own_backend
from ...dialects import ClaimedJob
from ...errors import NotRepeatedError, SteadyQueueError
from ...features.at_work import may_repeat
from ...internal_errors import log_internal_error
from ...logging import get_logger
from ...project_code import contained
from ...tasks.metadata import JobMetadata
from ..base.journal_reader import JournalSnapshot
from ..base.log_context import about_job
from ..worker import outcomes
from ..worker.attempt import Attempt, RunResult
from ..worker.callbacks import with_callback
from ..worker.time_outs import given_up, longest_of

logger = get_logger("steady_queue.supervisor")


class Death(NamedTuple):
    """The end of a process, as its jobs are told of it."""

    worker: str
    #: The process with its pid and its host, as far as they are known.
    process: str
    error: SteadyQueueError


def ended(claim: ClaimedJob, snapshot: JournalSnapshot | None, death: Death) -> RunResult:
    """Return the result of a claim, with what follows from it. ``snapshot``: the journal of its
    process; without one, it counts as running. Never raises, even if its row is damaged."""
    return with_callback(_result(claim, snapshot, death), claim)


def _result(claim: ClaimedJob, snapshot: JournalSnapshot | None, death: Death) -> RunResult:
    try:
        return contained(_as_noted, claim, snapshot, death)
    except Exception as problem:
        log_internal_error(
            logger,
            "The row of job %s is damaged",
            claim.job_id,
            extra=about_job("task.damaged", claim),
        )
        return RunResult(outcomes.unreadable(claim, death.worker, claim.claimed_at, problem))


def _as_noted(claim: ClaimedJob, snapshot: JournalSnapshot | None, death: Death) -> RunResult:
    """Return the result of a claim as the journal of its process tells of it."""
    worker = death.worker
    if snapshot is not None and claim.job_id in snapshot.stuck:
        attempt = _attempt(claim, worker)
        limit = longest_of(claim, attempt.task, attempt.backend)
        return attempt.failed(given_up(claim, limit), claim.claimed_at)
    if snapshot is None or claim.job_id in snapshot.running:
        attempt = _attempt(claim, worker)
        lost = attempt.lost(death.error, claim.claimed_at, death.process)
        return lost._replace(lost_process=worker)
    finished = snapshot.finished.get(claim.job_id)
    if finished is not None and finished.token == claim.token:
        return _attempt(claim, worker).journaled(finished)
    if may_repeat(JobMetadata.read(claim.metadata)):
        return RunResult(outcomes.released(claim))
    uncertain = _attempt(claim, worker).failed(_not_repeated(death), claim.claimed_at)
    return uncertain._replace(lost_process=worker)


def _not_repeated(death: Death) -> NotRepeatedError:
    """Return the error of a job that only its worker could have given back."""
    error = NotRepeatedError(
        f"The job is to start at most once, and may have started: it was claimed by "
        f"{death.process}, which did not give it back."
    )
    error.__cause__ = death.error
    return error


def _attempt(claim: ClaimedJob, worker: str) -> Attempt:
    backend = own_backend(claim.backend_name)
    attempt = Attempt.for_result(claim, backend, worker, claim.claimed_at)
    attempt.decode_for_signals()
    return attempt
