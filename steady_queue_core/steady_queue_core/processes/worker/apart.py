"""Storing outcomes one by one, after the database has refused some of them together: one ends, at
worst, its own job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...dialects import ClaimedJob, Outcome
from ...internal_errors import log_internal_error
from ...logging import get_logger
from ...printable import LONGEST_MESSAGE, LONGEST_PATH, bounded
from ..base.database import Unavailable
from ..base.log_context import about_job
from . import outcomes
from .attempt import RunResult
from .callbacks import with_callback

logger = get_logger("steady_queue.worker")

Settle = Callable[[RunResult], set[int]]


def settle_apart(
    result: RunResult, claim: ClaimedJob, worker: str, settle: Settle
) -> tuple[RunResult, set[int]]:
    """Store one result by ``settle``; return what was stored, and the jobs whose claims held.

    If the database does not take it as it is, it is tried with its text in ASCII, then as a failure
    of the job, and at last without the callback of that. Raises ``Unavailable`` if the database
    takes nothing now, and the last error if it takes nothing of this job.
    """
    problems: list[Exception] = []
    for version in _versions(result, claim, worker, problems):
        try:
            held = settle(version)
        except Exception as error:
            # The server may have answered that it cannot do this.
            if isinstance(error, Unavailable) and not error.refused:
                raise
            problems.append(error)
        else:
            if version is not result:
                _tell(claim, _cause_of(problems[0]))
            return version, held
    raise problems[-1]


def _versions(
    result: RunResult, claim: ClaimedJob, worker: str, problems: Sequence[Exception]
) -> Iterator[RunResult]:
    """Yield what is tried; ``problems``: what came of those before."""
    yield result
    plain = in_ascii(result)
    if plain is not result:
        yield plain
    if result.outcome.has_succeeded and isinstance(problems[0], Unavailable):
        return  # It is not known to be the fault of the job: what has succeeded has not failed.
    failure = outcomes.unreadable(claim, worker, claim.claimed_at, _cause_of(problems[0]))
    failed = in_ascii(RunResult(failure))
    with_its_callback = with_callback(failed, claim)
    if with_its_callback is not failed:
        yield with_its_callback
    yield failed


def _cause_of(problem: Exception) -> BaseException:
    return problem.__cause__ or problem if isinstance(problem, Unavailable) else problem


def in_ascii(result: RunResult) -> RunResult:
    """Return a result whose outcome has no other characters: a connection may not be able to take
    these. What is encoded as JSON has none."""
    outcome = result.outcome
    plain = outcome._replace(
        exception_class=_escaped(outcome.exception_class, LONGEST_PATH),
        message=_escaped(outcome.message, LONGEST_MESSAGE),
    )
    progress = None if outcome.sequel is None else outcome.sequel.progress
    if outcome.sequel is not None and progress is not None and not progress.text.isascii():
        told = replace(progress, text=progress.text.encode("ascii", "replace").decode())
        plain = plain._replace(sequel=outcome.sequel._replace(progress=told))
    return result if plain == outcome else result._replace(outcome=plain)


def _escaped(text: str, longest: int) -> str:
    if text.isascii():
        return text
    return bounded(text.encode("ascii", "backslashreplace").decode(), longest)


def _tell(claim: ClaimedJob, problem: BaseException) -> None:
    log_internal_error(
        logger,
        "The database refused the outcome of job %s: what could be stored of it was",
        claim.job_id,
        error=problem,
        extra=about_job("task.outcome_refused", claim, error_type=type(problem).__name__),
    )


#: Bytes of outcomes that one settlement stores, unless it is but one: a large one takes longer than
#: a server may keep silent.
MOST_BYTES = 4 * 2**20


def within_bounds(waiting: Sequence[RunResult]) -> Sequence[RunResult]:
    """Return the first of the results, as many as one settlement stores."""
    size = 0
    for number, result in enumerate(waiting):
        size += _size_of(result.outcome)
        if size > MOST_BYTES and number:
            return waiting[:number]
    return waiting


def _size_of(outcome: Outcome) -> int:
    size = len(outcome.return_value or "") + len(outcome.errors or "") + len(outcome.message)
    if outcome.sequel is not None:
        size += len(outcome.sequel.metadata or "")
        size += sum(len(each.job.arguments) for each in outcome.sequel.follow_ups)
    return size
