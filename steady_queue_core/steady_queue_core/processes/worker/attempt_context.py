"""The context of an attempt: what its task, and middleware, learn of it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from ...batches.batch import Batch
from ...batches.workflow import workflow_of
from ...dialects import Link
from ...tasks.outbox import Outbox
from ...tasks.task_context import SteadyQueueTaskContext
from ...timezones import from_utc
from .time_limits import time_limit_of

if TYPE_CHECKING:
    from .attempt import Attempt


def context_of(attempt: Attempt, outbox: Outbox) -> SteadyQueueTaskContext:
    """Return the context of an attempt whose task leaves calls to ``outbox``."""
    backend, metadata = attempt.backend, attempt.metadata
    limit = time_limit_of(attempt.claim, attempt.task, backend)
    end = None if limit is None else attempt.started_at + timedelta(seconds=limit.timeout)
    link = Link.of(metadata.batch)
    return SteadyQueueTaskContext(
        task_result=attempt.task_result,
        token=attempt.claim.token,
        outbox=outbox,
        deadline=None if end is None else from_utc(end),
        intended_time=metadata.intended_time,
        find_batch=None if link is None else partial(Batch.of, link.batch_id, backend),
        find_workflow=None if link is None else partial(workflow_of, link.batch_id, backend),
        notes=attempt.notes,
        running=attempt,
    )
