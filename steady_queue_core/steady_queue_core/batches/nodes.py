"""Nodes: the members of a batch as pictures and lists show them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from ..dialects import MemberState
from ..models import BatchMember

#: What may be said of a member that has not ended, beside the states of those that have.
WAITING, RUNNING = "waiting", "running"
#: For a state that is none.
UNKNOWN = "unknown"

_COLUMNS = (
    "pk", "job_id", "name", "state", "job__task_path", "job__claimedexecution__process_id",
    "job__waitingexecution__width", "nested__pk", "nested__kind", "nested__description",
)  # fmt: skip
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
    rows = BatchMember.objects.using(using).filter(pk__in=keys).order_by("pk")
    first = {name: _first(using, state) for name, state in _FIRST.items()}
    return [_node(*values) for values in rows.annotate(**first).values_list(*_COLUMNS, *_FIRST)]


def _first(using: str, state: MemberState) -> Subquery:
    """Return the first member in a state of the batch that a member is."""
    members = BatchMember.objects.using(using)
    within: QuerySet[Any] = members.filter(batch_id=OuterRef("nested__pk"), state=state)
    return Subquery(within.order_by("pk").values("pk")[:1])


def _node(
    key: int,
    job_id: Any,
    name: Any,
    state: Any,
    task_path: Any,
    process_id: Any,
    width: Any,
    batch_id: int | None,
    kind: Any,
    description: Any,
    *first: int | None,
) -> Node:
    if batch_id is None:
        job_id = job_id if isinstance(job_id, int) else None
        label = name or str(task_path or "").rpartition(".")[2] or f"job #{job_id}"
    else:
        job_id = None
        label = name or description or f"{kind} #{batch_id}"
    found = [pk for pk in first if pk is not None]
    return Node(
        key=key,
        label=str(label),
        state=_state(state, is_running=process_id is not None, is_waiting=width is not None),
        job_id=job_id,
        task_path=str(task_path or ""),
        batch_id=batch_id,
        kind=str(kind or ""),
        first=min(found, default=None),
    )


def _state(stored: Any, *, is_running: bool, is_waiting: bool) -> str:
    try:
        state = MemberState(stored)
    except ValueError:
        return UNKNOWN
    if state is MemberState.PENDING and (is_running or is_waiting):
        return RUNNING if is_running else WAITING
    return state.name.lower()
