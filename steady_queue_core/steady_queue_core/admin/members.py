"""The members of batches: as rows of a table, and those that a job waits for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from ..batches.nodes import Node, read_nodes
from ..batches.picture import run_when_of
from ..dialects import Link
from ..dialects.membership import DependencyState
from ..listings.damage import DAMAGED, suppress_damage
from ..listings.visibility import is_unrestricted
from ..models import Dependency, Job, JobBatch
from ..tasks.metadata import JobMetadata
from . import texts
from .base import QueueAdmin
from .detail import Fields, Section, Table

#: What is shown of a job or batch that the user may not see.
HIDDEN = "(hidden)"
HEADINGS = ("Member", "Name", "Task", "State")


def read_members(using: str, keys: Collection[int]) -> list[Node]:
    """Return the members with these ids, with stand-ins for damaged ones."""
    with suppress_damage():
        return read_nodes(using, keys)
    return [node for key in sorted(keys) for node in _read_one(using, key)]


def seen_by(page: QueueAdmin, request: HttpRequest, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes without what the user may not see on the pages of jobs and batches."""
    jobs, batches = page.rows(request, Job), page.rows(request, JobBatch)
    hidden = _beyond(jobs, {each.job_id for each in nodes})
    hidden_batches = _beyond(batches, {each.batch_id for each in nodes})
    return [
        replace(each, label=HIDDEN, task_path="", job_id=None, batch_id=None)
        if each.job_id in hidden or each.batch_id in hidden_batches
        else each
        for each in nodes
    ]


def member_row(page: QueueAdmin, request: HttpRequest, node: Node) -> tuple[Any, ...]:
    """Return what a table shows of a member."""
    link: Any = ""
    if node.batch_id is not None:
        link = page.batch_link(request, node.batch_id, node.kind)
    elif node.job_id is not None:
        link = page.job_link(request, node.job_id)
    task = texts.short_path(node.task_path) if node.task_path else ""
    return link, texts.named(node.label), task, node.state


def _beyond(rows: Any, keys: set[int | None]) -> set[int | None]:
    """Return those of ``keys`` whose rows are hidden."""
    keys = keys - {None}
    if not keys or is_unrestricted(rows):
        return set()
    return keys - set(rows.order_by().filter(pk__in=keys).values_list("pk", flat=True))


def _read_one(using: str, key: int) -> list[Node]:
    with suppress_damage():
        return read_nodes(using, [key])
    return [Node(key, DAMAGED)]


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
