"""How long the attempt at a claimed job may take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...compat import Task
from ...dialects import ClaimedJob
from ...features.time_limits.options import TimeLimit, time_limit
from ...tasks.metadata import NONE, JobMetadata

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend


def time_limit_of(claim: ClaimedJob, task: Task, backend: SteadyQueueBackend) -> TimeLimit | None:
    """Return the limit that the call, the task or the backend sets, the first of these that does;
    ``None``: the attempt may take any time."""
    of_task, settings = getattr(task, "timeout", None), backend.settings
    # Most jobs have no metadata, and most tasks no time-out.
    if claim.metadata is None and of_task is None and settings.timeout is None:
        return None
    limit = longest_of(claim, task, backend)
    return None if limit.timeout == math.inf else limit


def longest_of(claim: ClaimedJob, task: Task, backend: SteadyQueueBackend) -> TimeLimit:
    """Return the same limit, an infinite one if the attempt may take any time: it may be told to
    end for other reasons."""
    of_task, settings = getattr(task, "timeout", None), backend.settings
    of_call = NONE if claim.metadata is None else JobMetadata.read(claim.metadata)
    return time_limit(
        [of_call.timeout, of_task, settings.timeout],
        [of_call.timeout_grace, getattr(task, "timeout_grace", None), settings.timeout_grace],
    )
