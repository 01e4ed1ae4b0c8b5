"""What the features add to a call that is about to be stored: facts, and what has a column."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from .encoded_call import EncodedCall
from .features.calls import Facts, Stage
from .features.concurrency import limit as concurrency
from .features.declared import DEMANDING
from .features.delivery import options as delivery
from .features.fair import calls as fair
from .features.queue_limits import admission as queue_limits
from .features.rates import limit as rates
from .features.unique import calls as unique
from .tasks import current_batch
from .tasks.callbacks import resolved
from .tasks.metadata import NONE, JobMetadata


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


#: Asked about the calls of tasks that have a field, in this order.
OF_DECLARED: tuple[tuple[str, Stage], ...] = (
    ("job_metadata", delivery.at_call),
    ("concurrency", concurrency.at_call),
    ("unique", unique.at_call),
    ("rate", rates.at_call),
)
#: Asked about all calls, after those.
OF_ALL: tuple[Stage, ...] = (fair.at_call, current_batch.at_call)
#: Asked before calls from outside are stored.
require_room = queue_limits.require_room
