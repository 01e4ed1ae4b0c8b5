"""Nodes: the members of a batch as pictures and lists show them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Model, OuterRef, QuerySet, Subquery

from ..dialects import MemberState
from ..models import BatchMember, ClaimedExecution, Job, JobBatch, WaitingExecution

#: What may be said of a member that has not ended, beside the states of those that have.
WAITING, RUNNING = "waiting", "running"
#: For a state that is none.
UNKNOWN = "unknown"

#: What is read of the job of a member, where the rows of it are: looked up one by one, whatever
#: there is beside them.
_OF_JOBS: dict[str, tuple[type[Model], str]] = {
    "task_path": (Job, "task_path"),
    "process_id": (ClaimedExecution, "process_id"),
    "width": (WaitingExecution, "width"),
}
_FIRST = {f"first_{state.name.lower()}": state for state in MemberState}


@dataclass(frozen=True, slots=True)
class Node:
    """A member of a batch: a job, or another batch."""

    key: int
    #: The name of the node in a workflow, the description of the batch, or the name of the task.
    label: str
    #: The name of its ``MemberState``, ``"waiting"``, ``"running"`` or ``"unknown"``.
    state: str = UNKNOWN
    job_id: int | None = None
    task_path: str = ""
    #: The batch that it is, what that was made as, and its first member.
    batch_id: int | None = None
    kind: str = ""
    first: int | None = None
    #: The member that it is drawn in.
    inside: int | None = None


def read_nodes(using: str, keys: Collection[int]) -> list[Node]:
    """Return the members with these ids, in their order, without those that are gone."""
    rows = BatchMember.objects.using(using).filter(pk__in=keys)
    of_jobs = {
        name: Subquery(
            model._default_manager.using(using).filter(pk=OuterRef("job_id")).values(column)[:1]
        )
        for name, (model, column) in _OF_JOBS.items()
    }
    values = rows.annotate(**of_jobs).values_list("pk", "job_id", "name", "state", *_OF_JOBS)
    found = sorted(values, key=lambda each: each[0])
    batches = _batches(using, [values[0] for values in found if values[1] is None])
    nodes = []
    for key, job_id, name, stored, task_path, process_id, width in found:
        state = _state(stored, is_running=process_id is not None, is_waiting=width is not None)
        batch = batches.get(key)
        if batch is not None:
            nodes.append(_of_batch(key, name, state, batch))
        else:
            nodes.append(_of_job(key, name, state, job_id, task_path))
    return nodes


class _Batch(NamedTuple):
    """What a picture shows of a batch that is a member."""

    id: int
    kind: Any
    description: Any
    first: int | None


def _batches(using: str, keys: Collection[int]) -> dict[int, _Batch]:
    """Return the batches that these members are, by the ids of the members."""
    if not keys:
        return {}
    rows = JobBatch.objects.using(using).filter(member_id__in=keys)
    first = {name: _first(using, state) for name, state in _FIRST.items()}
    values = rows.annotate(**first).values_list("member_id", "pk", "kind", "description", *_FIRST)
    return {
        key: _Batch(pk, kind, description, min(filter(None, members), default=None))
        for key, pk, kind, description, *members in values
    }


def _first(using: str, state: MemberState) -> Subquery:
    """Return the first member of a batch in a state, which an index finds."""
    members = BatchMember.objects.using(using)
    within: QuerySet[Any] = members.filter(batch_id=OuterRef("pk"), state=state)
    return Subquery(within.order_by("pk").values("pk")[:1])


def _of_batch(key: int, name: Any, state: str, batch: _Batch) -> Node:
    label = str(name or batch.description or f"{batch.kind} #{batch.id}")
    return Node(key, label, state, batch_id=batch.id, kind=str(batch.kind), first=batch.first)


def _of_job(key: int, name: Any, state: str, job_id: Any, task_path: Any) -> Node:
    job_id = job_id if isinstance(job_id, int) else None
    path = str(task_path or "")
    label = name or path.rpartition(".")[2] or ("a job" if job_id is None else f"job #{job_id}")
    return Node(key, str(label), state, job_id=job_id, task_path=path)


def _state(stored: Any, *, is_running: bool, is_waiting: bool) -> str:
    try:
        state = MemberState(stored)
    except ValueError:
        return UNKNOWN
    if state is MemberState.PENDING and (is_running or is_waiting):
        return RUNNING if is_running else WAITING
    return state.name.lower()
