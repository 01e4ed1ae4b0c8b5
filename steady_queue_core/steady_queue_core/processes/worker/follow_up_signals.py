"""Telling of the jobs that were stored together with the outcome of another one."""

from __future__ import annotations

from typing import Any

from ... import arguments
from ...compat import task_enqueued
from ...configured_backends import own_backend
from ...dialects import FollowUp, NewJob, Outcome
from ...encoded_call import EncodedCall
from ...logging import about, get_logger
from ...project_code import contained
from ...tasks.results import task_of
from ...tasks.task_signals import Audience, send_task_signal

logger = get_logger("steady_queue.worker")


def has_follow_ups(outcome: Outcome) -> bool:
    """Whether jobs are stored together with an outcome."""
    return outcome.sequel is not None and bool(outcome.sequel.follow_ups)


def tell_of_follow_ups(outcome: Outcome) -> None:
    """Send ``task_enqueued`` for the jobs that were stored together with an outcome."""
    if outcome.sequel is None or not Audience().hears(task_enqueued):
        return
    for each in outcome.sequel.follow_ups:
        if each.stored is None or each.stored.job_id is None or each.stored.is_duplicate:
            continue
        _tell(each)


def _tell(follow_up: FollowUp) -> None:
    job, call = follow_up.job, follow_up.call
    try:
        if call is None:
            call = contained(_call_of, job)
        backend: Any = call.task.get_backend()
        result = backend.new_result(call, follow_up.stored)
    except Exception:
        logger.exception(
            "task_enqueued could not be sent for a job of %s",
            job.task_path,
            extra=about("signal.follow_up_untold", task=job.task_path, queue=job.queue_name),
        )
        return
    send_task_signal(task_enqueued, type(backend), result)


def _call_of(job: NewJob) -> EncodedCall:
    """Return the call that another process has made, without the models in its arguments."""
    task = task_of(job.task_path, job.backend_name, job.queue_name, job.rank)
    backend = own_backend(job.backend_name)
    text, limits = backend.opened(job), backend.payload_limits
    args, kwargs = arguments.decode_call(text, resolve_models=False, limits=limits)
    return EncodedCall(task, args, kwargs, text, job.limit, job.metadata)
