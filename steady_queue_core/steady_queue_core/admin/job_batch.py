"""What a job has to do with a batch: which one, and what it waits for."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from ..batches.picture import run_when_of
from ..dialects import Link
from ..dialects.membership import DependencyState
from ..models import Dependency
from ..tasks.metadata import JobMetadata
from .base import QueueAdmin
from .detail import Fields, Section, Table
from .member_rows import HEADINGS, member_row, read_members, seen_by

#: Most members on the page of a job that waits for them.
MOST_AWAITED = 20


def batch_sections(page: QueueAdmin, request: HttpRequest, job: Any) -> list[Section]:
    """Return the batch of a job, and what it waits for; nothing for most jobs."""
    link = Link.of(JobMetadata.read(job.metadata).batch)
    if link is None:
        return []
    role = "callback of" if link.is_callback else "member of"
    batch = Fields("Batch", [(role.capitalize(), page.batch_link(request, link.batch_id))])
    if getattr(job, "waitingexecution", None) is None:
        return [batch]
    return [batch, _awaited(page, request, job)]


def _awaited(page: QueueAdmin, request: HttpRequest, job: Any) -> Section:
    """Return the members that have not ended of those that a job waits for."""
    using = job._state.db
    rows = Dependency.objects.using(using).filter(job_id=job.pk, state=DependencyState.OPEN)
    found = rows.order_by("pk").values_list("parent_id", "run_when")[: MOST_AWAITED + 1]
    wanted = {parent_id: run_when_of(when) for parent_id, when in found}
    nodes = seen_by(page, request, read_members(using, [*wanted][:MOST_AWAITED]))
    shown = [(*member_row(page, request, node), wanted[node.key]) for node in nodes]
    note = f"The first {MOST_AWAITED}." if len(wanted) > MOST_AWAITED else ""
    return Table("Waits for", (*HEADINGS, "Has to end by"), shown, note if shown else "Nothing.")
