"""Adds the callback of a job to its final outcome, from the row of the job alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from ... import arguments
from ...configured_backends import own_backend
from ...dialects import ClaimedJob, Ending, FollowUp, Outcome, Sequel
from ...encoded_call import EncodedCall
from ...features.callbacks.options import Callback
from ...features.fair.calls import is_fair
from ...internal_errors import log_internal_error
from ...logging import get_logger
from ...models.operations.cancel import EXCEPTION as CANCELLED
from ...payloads import PayloadError
from ...project_code import contained
from ...tasks.copies import rebuilt
from ...tasks.metadata import JobMetadata
from ...tasks.placement import beside
from ...tasks.registry import find_task, known_task
from ...tasks.results import task_of
from ...tasks.stored_payloads import call_text
from ..base.log_context import about_job
from .attempt import RunResult

logger = get_logger("steady_queue.worker")


def with_callback(result: RunResult, claim: ClaimedJob) -> RunResult:
    """Return the result of a claim with the callback that follows from it, if there is one.

    A job that was cancelled, or has discarded itself, has neither succeeded nor failed. Never
    raises: a job ends, whatever becomes of its callback.
    """
    # Most jobs have no metadata.
    if claim.metadata is None or not result.outcome.completes_job:
        return result
    try:
        return contained(_with_callback, result, claim)
    except Exception as error:
        log_internal_error(
            logger,
            "The callback of job %d could not be stored",
            claim.job_id,
            error=error,
            extra=about_job("task.callback_lost", claim, error_type=type(error).__name__),
        )
        return result


def _with_callback(result: RunResult, claim: ClaimedJob) -> RunResult:
    outcome = result.outcome
    metadata = JobMetadata.read(claim.metadata)
    args = [_result_id(claim)]
    if outcome.ending is Ending.FINISHED:
        stored = None if _has_discarded_itself(outcome) else metadata.on_success
    else:
        was_cancelled = claim.is_cancelled or outcome.exception_class == CANCELLED
        stored = None if was_cancelled else metadata.on_failure
        args += [outcome.exception_class, outcome.message]
    if stored is None or not _is_of_the_call(claim):
        return result
    follow_up = _follow_up(Callback(*stored), args, claim, metadata.headers)
    former = outcome.sequel or Sequel(is_implied=True)
    sequel = former._replace(follow_ups=(*former.follow_ups, follow_up))
    return result._replace(outcome=outcome._replace(sequel=sequel))


def _is_of_the_call(claim: ClaimedJob) -> bool:
    """Whether the metadata of a job are those that were signed with its call."""
    try:
        call_text(claim)
    except PayloadError as error:
        logger.warning(
            "The callback of job %d is not enqueued, since its call cannot be verified: %s",
            claim.job_id,
            error,
            extra=about_job("task.callback_lost", claim, error_type=type(error).__name__),
        )
        return False
    return True


def _result_id(claim: ClaimedJob) -> str:
    """Return the id by which ``get_result()`` of the task of a job finds its result."""
    job_id, task = str(claim.job_id), known_task(claim.task_path)
    if task is None:
        return job_id
    try:
        name = getattr(task.get_backend(), "result_id_of", None)
        return job_id if name is None else str(name(claim.backend_name, job_id))
    except ImproperlyConfigured:  # Which is no reason for a job not to end.
        return job_id


def _has_discarded_itself(outcome: Outcome) -> bool:
    sequel = outcome.sequel
    return (
        sequel is not None
        and sequel.metadata is not None
        and JobMetadata.read(sequel.metadata).discarded is not None
    )


def _follow_up(
    callback: Callback, args: list[str], claim: ClaimedJob, headers: Mapping[str, str]
) -> FollowUp:
    try:
        return contained(_as_called, callback, args, claim, headers)
    except Exception as error:
        log_internal_error(
            logger,
            "The callback %s of job %d is enqueued as its job describes it, without a limit",
            callback.path,
            claim.job_id,
            error=error,
            extra=about_job("task.callback_unknown", claim, error_type=type(error).__name__),
        )
        return _as_described(callback, args)


def _as_called(
    callback: Callback, args: list[str], claim: ClaimedJob, headers: Mapping[str, str]
) -> FollowUp:
    """Return the job of a callback as if somebody had called it."""
    task = rebuilt(
        find_task(callback.path),
        queue_name=callback.queue_name,
        priority=callback.priority,
        backend=callback.backend,
    )
    if hasattr(task.get_backend(), "shard_beside"):  # A job from before there were shards.
        task = beside(task, own_backend(claim.backend_name))
    backend: Any = task.get_backend()
    call = backend.encode(task, args, {})
    if headers:
        call = _with_headers(call, headers, claim)
    return FollowUp(backend.new_job(call), call)


def _with_headers(call: EncodedCall, headers: Mapping[str, str], claim: ClaimedJob) -> EncodedCall:
    """Return the call of a callback with what it inherits of the headers of its job."""
    try:
        backend: Any = call.task.get_backend()
        chain = backend.middleware
        inherited = {} if chain is None else contained(chain.inherited, headers)
        return call.carrying(inherited) if inherited else call
    except Exception as error:  # Middleware is code of the project.
        log_internal_error(
            logger,
            "The callback of job %d inherits no headers",
            claim.job_id,
            error=error,
            extra=about_job("task.headers_lost", claim, error_type=type(error).__name__),
        )
        return call


def _as_described(callback: Callback, args: list[str]) -> FollowUp:
    """Return the job of a callback that this process does not know, or that does not accept these
    arguments any more: it is stored, and whoever claims it finds out what is wrong."""
    task = task_of(callback.path, callback.backend, callback.queue_name, -callback.priority)
    backend = own_backend(callback.backend)
    fair_key = "" if is_fair(backend, callback.queue_name) else None
    metadata, text = JobMetadata(fair=fair_key).text(), arguments.encode_call(args, {})
    call = EncodedCall(task, args, {}, text, None, metadata, fair_key=fair_key)
    return FollowUp(backend.new_job(call), call)
