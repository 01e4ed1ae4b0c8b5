"""What a batch is made of, checked and in its stored form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import arguments
from ..arguments import TaskArgumentError
from ..bulk import Call, call
from ..compat import AnyTask, InvalidTask, Task
from ..dialects import JobKey, NewJob, is_storable
from ..dialects.callbacks import encoded
from ..tasks import current_batch
from ..tasks.callbacks import share_a_database
from ..tasks.placement import beside
from .graph import BatchOptions

LONGEST_DESCRIPTION = 255


def row_values(kind: str, options: BatchOptions, backend: Any) -> dict[str, Any]:
    """Return what the row of a batch says of it.

    Raises ``ValueError``, ``InvalidTask``, ``TypeError`` and ``TaskArgumentError`` for what cannot
    be stored.
    """
    return {
        "kind": kind,
        "description": _checked_description(options.description),
        "metadata": _encoded_metadata(options.metadata),
        "callbacks": _encoded_callbacks(options.callbacks, backend),
        "backend_name": backend.alias,
    }


def _checked_description(text: object) -> str:
    """Return the description of a batch. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(text, str):
        raise TypeError(f"description must be a string, not of type {type(text).__name__}.")
    if len(text) > LONGEST_DESCRIPTION or not is_storable(text):
        raise ValueError(
            f"description must have at most {LONGEST_DESCRIPTION} characters, without NUL: "
            f"{text[:50]!r}."
        )
    return text


def _encoded_metadata(metadata: Mapping[str, Any] | None) -> str | None:
    """Return the stored form of what the caller passes. Raises ``TypeError`` and
    ``TaskArgumentError``."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping) or not all(isinstance(name, str) for name in metadata):
        raise TypeError("metadata must be a dict with strings as keys.")
    text = arguments.encode(dict(metadata), root="metadata")
    if arguments.has_models(text):
        raise TaskArgumentError(
            "metadata cannot be stored: there is a model instance in it. Pass its primary key."
        )
    return text


def _encoded_callbacks(callbacks: Mapping[str, Call | AnyTask | None], backend: Any) -> str | None:
    """Return the stored form of the callbacks of a batch of ``backend``.

    Raises ``InvalidTask``, ``TypeError`` and ``TaskArgumentError`` that name the callback.
    """
    with current_batch.outside():
        jobs = {
            name: _job(name, given, backend) for name, given in callbacks.items()
            if given is not None
        }  # fmt: skip
    return encoded(jobs, backend.payload_limits)


def _job(name: str, given: object, backend: Any) -> NewJob:
    wanted = call(given) if isinstance(given, Task) else given
    if not isinstance(wanted, Call) or not isinstance(wanted.task, Task):
        raise TypeError(
            f"{name} must be a task, or a call as steady_queue_core.call(task, ...) makes it, not "
            f"of type {type(given).__name__}."
        )
    task = beside(wanted.task, backend)
    own: Any = task.get_backend()
    if not share_a_database(backend, own):
        raise InvalidTask(
            f"{name} is {wanted.task.module_path}, whose backend {wanted.task.backend!r} does not "
            f"store its jobs in the database of {backend.alias!r}: it could not be enqueued with "
            "the end of the batch. Use a backend on the same database."
        )
    job: NewJob = own.new_job(own.encode(task, list(wanted.args), dict(wanted.kwargs)))
    if JobKey.read(job.metadata) is not None:
        raise InvalidTask(
            f"{name} is {wanted.task.module_path}, whose calls are unique: a callback is enqueued "
            "once in any case. Let it call a task without a unique key, which may enqueue this one."
        )
    return job
