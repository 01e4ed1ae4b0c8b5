"""The encoded arguments, result, checkpoint and steps of a job, taken out of their stored form."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..arguments import PayloadLimits
from ..compat import DEFAULT_TASK_BACKEND_ALIAS, InvalidTaskBackend, task_backends
from ..configuration import ConfigurationError
from ..payloads import PayloadCodec, call_scope, checkpoint_scope, result_scope, step_scope

if TYPE_CHECKING:
    from ..models import Job, Step


def call_text(job: Job) -> str:
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


def limits_of(backend_name: str) -> PayloadLimits | None:
    """Return the limits of the payloads of a backend, unless it has none."""
    limits: PayloadLimits | None = _of_backend(backend_name, "payload_limits")
    return limits


def codec_of(backend_name: str) -> PayloadCodec | None:
    """Return what seals and opens the payloads of a backend; ``None``: nothing does."""
    codec: PayloadCodec | None = _of_backend(backend_name, "payload_codec")
    return codec


def _of_backend(name: str, attribute: str) -> Any:
    """Return what the backend says that a row names; of an unknown name, what the default one says,
    so that a row cannot name itself out of a signature."""
    for alias in (name, DEFAULT_TASK_BACKEND_ALIAS):
        with suppress(InvalidTaskBackend, ConfigurationError):
            return getattr(task_backends[alias], attribute, None)
    return None
