"""What the features add to a call that is about to be stored: facts, and what has a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from .dialects import Link
from .encoded_call import EncodedCall
from .features.declared import DEMANDING
from .features.fair.calls import fair_key_of_call
from .features.unique.calls import key_of_call
from .tasks.callbacks import resolved
from .tasks.current_batch import batch_of_call
from .tasks.metadata import NONE, JobMetadata

#: What a job keeps of a call in its metadata, by the names there.
Facts = Mapping[str, Any]
#: Returns the facts of a call for a backend. Raises ``InvalidTask``.
Stage = Callable[[EncodedCall, Any], Facts]
NOTHING: Facts = {}


def metadata_of_call(
    call: EncodedCall, backend: Any, intended_time: datetime | None = None
) -> JobMetadata | None:
    """Return what the job of a call keeps beyond its columns, and fill in those of the call;
    ``None``: nothing.

    Raises ``InvalidTask`` for keys that could not be computed, and options that do not fit.
    """
    task = call.task
    facts: dict[str, Any] = {} if intended_time is None else {"intended_time": intended_time}
    own: JobMetadata | None = getattr(task, "job_metadata", None)
    if own is not None or backend.job_defaults:
        facts.update(_options(call, backend, own or NONE))
    for field, stage in OF_DECLARED:
        if getattr(task, field, None) is not None:
            facts.update(stage(call, backend))
    for stage in OF_ALL:
        if found := stage(call, backend):
            facts.update(found)
    return replace(own or NONE, **facts) if facts else own


def _concurrency(call: EncodedCall, backend: Any) -> Facts:
    concurrency: Any = getattr(call.task, "concurrency", None)
    call.limit = concurrency.of_call(call.task, call.args, call.kwargs)
    return NOTHING


def _unique(call: EncodedCall, backend: Any) -> Facts:
    key = key_of_call(call.task, call.args, call.kwargs, call.arguments)
    return NOTHING if key is None else {"unique": key.stored}


def _rate(call: EncodedCall, backend: Any) -> Facts:
    rate: Any = getattr(call.task, "rate", None)
    allowed = rate.of_call(call.task, call.args, call.kwargs)
    return NOTHING if allowed is None else {"rate": allowed.stored}


def _options(call: EncodedCall, backend: Any, own: JobMetadata) -> Facts:
    """Return what jobs keep of the defaults of the backend, and which tasks are their callbacks."""
    facts = own.replaced_by(backend.job_defaults)
    for option in DEMANDING:
        value = facts.get(option.name, getattr(own, option.name))
        if value is not None and option.require is not None:
            setting = f"TASKS[{backend.alias!r}]['OPTIONS'][{option.name!r}]"
            is_default = getattr(own, option.name) is None
            option.require(value, call.task, setting if is_default else option.name)
    return facts | resolved(own, backend)


def _fair(call: EncodedCall, backend: Any) -> Facts:
    if not backend.is_fair(call.task.queue_name):
        return NOTHING
    call.fair_key = fair_key_of_call(call.task, call.args, call.kwargs)
    return {"fair": call.fair_key}


def _batch(call: EncodedCall, backend: Any) -> Facts:
    call.batch_id = batch_of_call(backend, call.task)
    return NOTHING if call.batch_id is None else {"batch": Link(call.batch_id).stored}


#: Asked about the calls of tasks that have a field, in this order.
OF_DECLARED: tuple[tuple[str, Stage], ...] = (
    ("concurrency", _concurrency),
    ("unique", _unique),
    ("rate", _rate),
)
#: Asked about all calls, after those.
OF_ALL: tuple[Stage, ...] = (_fair, _batch)
