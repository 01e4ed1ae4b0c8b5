"""The encoded arguments, result, checkpoint and steps of a job, taken out of their stored form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..payloads import call_scope, checkpoint_scope, result_scope, step_scope
from ..payloads.backends import codec_of

if TYPE_CHECKING:
    from ..dialects import ClaimedJob
    from ..models import Job, Step


def call_text(job: Job | ClaimedJob) -> str:
    """Return the encoded arguments. Raises ``PayloadError``."""
    stored: str = job.arguments
    codec = codec_of(job.backend_name)
    return stored if codec is None else codec.open(stored, call_scope(job, job.concurrency_key))


def result_text(job: Job) -> str:
    """Return the encoded return value of a job that has one. Raises ``PayloadError``."""
    stored: Any = job.return_value
    codec = codec_of(job.backend_name)
    return stored if codec is None else codec.open(stored, result_scope(job, job.pk))


def checkpoint_text(job: Job, stored: str) -> str:
    """Return the encoded checkpoint of a job that has stored one. Raises ``PayloadError``."""
    codec = codec_of(job.backend_name)
    return stored if codec is None else codec.open(stored, checkpoint_scope(job, job.pk))


def step_text(job: Job, step: Step, stored: str) -> str:
    """Return the encoded value of a step of a job. Raises ``PayloadError``."""
    codec = codec_of(job.backend_name)
    scope = step_scope(job, job.pk, step.name, is_sleep=bool(step.is_sleep))
    return stored if codec is None else codec.open(stored, scope)
