"""Workflows: calls that wait for each other in any way that has no cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from asgiref.sync import sync_to_async

from ..bulk import Call
from ..compat import AnyTask, InvalidTask
from ..configuration.errors import suggest
from ..dialects.callbacks import ON_FAILURE, ON_FINISH, ON_SUCCESS
from ..dialects.database import Database
from ..dialects.membership import WORKFLOW, MemberState, RunWhen
from ..errors import AlreadyFinished
from ..models import BatchMember, JobBatch
from .enqueue import enqueue_graph
from .graph import BatchOptions, Graph, Member, Place, compiled
from .placeholders import NodeResult
from .results import BatchResult
from .steps import stand_ins
from .store import GraphStore
from .transactions import in_transaction_on

LONGEST_NAME = 255


class Node:
    """A call, chain or group of a workflow."""

    def __init__(
        self, step: Any, name: str, after: Iterable[Node | str], run_when: RunWhen, number: int = 0
    ) -> None:
        self.step, self.name, self.run_when, self.number = step, name, run_when, number
        self.after = list(after)
        #: Once it is stored; what its value is made of, if that was done here: see ``places``.
        self.member_id: int | None = None
        self.shape: Any = None

    def __repr__(self) -> str:
        return repr(self.name) if self.name else f"node {self.number}"

    @property
    def result(self) -> Any:
        """Its return value, as an argument of another node, which then waits for it.

        That argument may be of any type.
        """
        return NodeResult(self)

    @property
    def parents(self) -> list[Node | str]:
        """What it waits for."""
        used = [each.node for each in stand_ins(self.step) if isinstance(each, NodeResult)]
        return list(dict.fromkeys([*self.after, *used]))


class Workflow:
    """Calls that each wait for some of the others. Add nodes, and enqueue it."""

    def __init__(
        self,
        description: str = "",
        *,
        metadata: Mapping[str, Any] | None = None,
        on_success: Call | AnyTask | None = None,
        on_failure: Call | AnyTask | None = None,
        on_finish: Call | AnyTask | None = None,
    ) -> None:
        callbacks = {ON_SUCCESS: on_success, ON_FAILURE: on_failure, ON_FINISH: on_finish}
        self.options = BatchOptions(description, metadata, callbacks)
        self.nodes: list[Node] = []
        self._named: dict[str, Node] = {}

    def add(
        self,
        step: Any,
        *,
        name: str = "",
        after: Iterable[Node | str] | Node | str = (),
        run_when: str = "success",
    ) -> Node:
        """Add a call, chain or group that starts once all of ``after``, nodes or their names, have
        ended as ``run_when`` says: ``"success"``, ``"failure"`` or ``"finished"``. Otherwise, it is
        cancelled. Nodes whose ``result`` is in its arguments are waited for in any case.

        Raises ``ValueError`` for a name that is taken, and an unknown ``run_when``.
        """
        node = checked_node(step, name, after, run_when, len(self.nodes))
        if name in self._named:
            raise ValueError(f"The workflow has a node {name!r} already. Choose another name.")
        self.nodes.append(node)
        if name:
            self._named[name] = node
        return node

    def enqueue(self) -> BatchResult:
        """Store everything in one transaction, or in the caller's; return the result.

        Raises what ``task.enqueue()`` raises, ``ValueError`` for a workflow without nodes, for
        unknown names and for cycles, and ``InvalidTask`` for nodes of another workflow.
        """
        if not self.nodes:
            raise ValueError("A workflow needs at least one node.")
        return enqueue_graph(self._graph())

    async def aenqueue(self) -> BatchResult:
        """Async version of :meth:`enqueue`."""
        result: BatchResult = await sync_to_async(self.enqueue, thread_sensitive=True)()
        return result

    def _graph(self) -> Graph:
        parents = {node: [self._found(each, node) for each in node.parents] for node in self.nodes}
        members: dict[Any, Member] = {}
        for node in _in_order(parents):
            waits = [(members[parent], node.run_when) for parent in parents[node]]
            place = Place(waits, nodes=members, run_when=node.run_when)
            members[node] = compiled(node.step, place, f"workflow[{node}]")
            members[node].name = node.name
        return Graph(WORKFLOW, [members[node] for node in self.nodes], options=self.options)

    def _found(self, parent: Node | str, child: Node) -> Node:
        if isinstance(parent, str):
            if parent not in self._named:
                near = suggest(parent, self._named)
                raise ValueError(f"{child!r} is to run after {parent!r}, which is no node; {near}")
            return self._named[parent]
        if parent.number >= len(self.nodes) or self.nodes[parent.number] is not parent:
            raise InvalidTask(f"{child!r} is to run after {parent!r} of another workflow.")
        return parent


class RunningWorkflow(BatchResult):
    """A workflow as its tasks see it, as ``context.workflow``: it takes more nodes."""

    def add(
        self,
        step: Any,
        *,
        name: str = "",
        after: Iterable[Node | str] | Node | str = (),
        run_when: str = "success",
    ) -> Node:
        """Add a node, which is stored at once; for the arguments see ``Workflow.add()``. If there
        is one of this name, that is returned: a task that runs again adds nothing twice.

        Raises ``AlreadyFinished`` if the workflow has ended or was cancelled.
        """
        node = checked_node(step, name, after, run_when)
        database = Database.of(self.using)
        in_transaction_on(database, lambda: self._add(database, node))
        return node

    async def aadd(self, step: Any, **options: Any) -> Node:
        """Async version of :meth:`add`."""
        node: Node = await sync_to_async(self.add, thread_sensitive=True)(step, **options)
        return node

    def _add(self, database: Database, node: Node) -> None:
        # Before the batch, as where jobs end.
        members = self._locked(database, node)
        if database.joins.lock_open({self.id}):
            raise AlreadyFinished(
                f"Workflow {self.id} takes no more nodes: it has ended, was cancelled, or is gone."
            )
        rows = BatchMember.objects.using(self.using).filter(batch_id=self.id)
        known = rows.filter(name=node.name).first() if node.name else None
        if known is not None:
            node.member_id = known.pk
            return
        waits = [(members[parent], node.run_when) for parent in node.parents]
        place = Place(waits, nodes=members, run_when=node.run_when)
        member = compiled(node.step, place, f"workflow[{node}]")
        member.name = node.name
        graph = Graph(WORKFLOW, [member], batch_id=self.id)
        store = GraphStore(graph, self.backend)
        store.store_by(store.insert)
        node.member_id, node.shape = member.member_id, store.shape_of(member)

    def _locked(self, database: Database, node: Node) -> dict[Any, Member]:
        """Return the parents of a node; whether they have ended stays as it is meanwhile."""
        parents = node.parents
        rows = BatchMember.objects.using(self.using).filter(batch_id=self.id)
        names = [each for each in parents if isinstance(each, str)]
        by_name = dict(rows.filter(name__in=names).values_list("name", "pk")) if names else {}
        keys = {
            each: by_name.get(each) if isinstance(each, str) else each.member_id for each in parents
        }
        wanted = rows.filter(pk__in=[pk for pk in keys.values() if pk is not None]).order_by("pk")
        states = {row.pk: row.state for row in database.lock_rows(wanted, wait=True)}
        found: dict[Any, Member] = {}
        for each, pk in keys.items():
            if pk is None or pk not in states:
                raise ValueError(
                    f"{node!r} is to run after {each!r}, which is no node of workflow {self.id}."
                )
            shape = None if isinstance(each, str) else each.shape
            found[each] = Member(member_id=pk, state=MemberState(states[pk]), shape=shape)
        return found


def workflow_of(batch_id: int, backend: Any) -> RunningWorkflow | None:
    """Return the workflow that a batch is, or is part of."""
    seen = set[int]()
    while batch_id not in seen:
        seen.add(batch_id)
        rows = JobBatch.objects.using(backend.database).filter(pk=batch_id)
        found = rows.values_list("kind", "member__batch_id").first()
        if found is None:
            return None
        kind, outer = found
        if kind == WORKFLOW:
            return RunningWorkflow.stored(batch_id, backend)
        if outer is None:
            return None
        batch_id = outer
    return None


def checked_node(step: Any, name: str, after: Any, run_when: str, number: int = 0) -> Node:
    """Return a node. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or "\0" in name:
        raise ValueError(f"name must be text of at most {LONGEST_NAME} characters, not {name!r}.")
    known = {each.name.lower(): each for each in RunWhen}
    if run_when not in known:
        near = suggest(str(run_when), known)
        raise ValueError(f"run_when must be one of {', '.join(known)}, not {run_when!r}; {near}")
    parents = [after] if isinstance(after, Node | str) else list(after)
    for parent in parents:
        if not isinstance(parent, Node | str):
            raise TypeError(f"after takes nodes and their names, not {type(parent).__name__}.")
    return Node(step, name, parents, known[run_when], number)


def _in_order(parents: Mapping[Node, Iterable[Node]]) -> list[Node]:
    try:
        return list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        trail = " -> ".join(repr(node) for node in reversed(error.args[1]))
        raise ValueError(f"The workflow has a cycle: {trail}.") from None
