"""What chains, groups and workflows are compiled to: members, and what these wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..arguments import ParentResult
from ..bulk import Call
from ..compat import InvalidTask, Task
from ..dialects.membership import CHAIN, GROUP, MemberState, RunWhen
from .placeholders import NodeResult, Previous, ResultOf, replaced


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What is stored with a batch, as the caller has given it."""

    description: str = ""
    metadata: Mapping[str, Any] | None = None
    callbacks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Member:
    """A call, or a graph in another one, which is waited for as a whole."""

    call: Call | None = None
    graph: Graph | None = None
    name: str = ""
    #: What it waits for; the place of each is the number under which arguments refer to it.
    waits: list[tuple[Member, RunWhen]] = field(default_factory=list)
    #: Once it is stored.
    member_id: int | None = None
    state: MemberState = MemberState.PENDING
    #: What its value is made of, if it was stored with another graph; see ``places``.
    shape: Any = None


@dataclass(eq=False, slots=True)
class Graph:
    """Members of one batch, in their order."""

    kind: str
    members: list[Member] = field(default_factory=list)
    batch_id: int | None = None
    options: BatchOptions = field(default_factory=BatchOptions)

    def walk(self) -> Iterator[tuple[Graph, Member]]:
        """Yield all members, each before those in it, with the graph that it is in."""
        for member in self.members:
            yield self, member
            if member.graph is not None:
                yield from member.graph.walk()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a step is: what has to end before, and what its stand-ins stand for."""

    waits: Sequence[tuple[Member, RunWhen]] = ()
    previous: Member | None = None
    #: The earlier steps of its chain.
    steps: Sequence[Member] = ()
    #: The members of the nodes of its workflow.
    nodes: Mapping[Any, Member] = field(default_factory=dict)
    #: How nodes have to end that only a stand-in names.
    run_when: RunWhen = RunWhen.SUCCESS


def compiled(step: Any, place: Place, where: str) -> Member:
    """Return the member that a call, chain or group becomes. Raises ``TypeError``, ``ValueError``
    and ``InvalidTask`` that name ``where``."""
    if isinstance(step, Call):
        return _of_call(step, place, where)
    compile_graph = getattr(step, "graph_at", None)
    if compile_graph is None:
        raise TypeError(
            f"{where} is of type {type(step).__name__}; give calls, as "
            "steady_queue_core.call(task, ...) makes them, chains and groups."
        )
    return Member(graph=compile_graph(place, where))


def grouped(steps: Sequence[Any], place: Place, where: str, options: BatchOptions) -> Graph:
    """Return the graph of steps that run at once."""
    members = [compiled(step, place, f"{where}[{n}]") for n, step in enumerate(steps)]
    return Graph(GROUP, members, options=options)


def chained(steps: Sequence[Any], place: Place, where: str, options: BatchOptions) -> Graph:
    """Return the graph of steps that run one after the other."""
    graph = Graph(CHAIN, options=options)
    for number, step in enumerate(steps):
        if graph.members:
            last = graph.members[-1]
            waits = [(last, RunWhen.SUCCESS)]
            place = Place(waits, last, tuple(graph.members), place.nodes)
        graph.members.append(compiled(step, place, f"{where}[{number}]"))
    return graph


def _of_call(given: Call, place: Place, where: str) -> Member:
    if not isinstance(given.task, Task):
        raise TypeError(
            f"{where} is a call of something of type {type(given.task).__name__}; decorate the "
            "function with @task."
        )
    member = Member(waits=list(place.waits))

    def reference(stand_in: Any) -> ParentResult:
        parent = _parent(stand_in, place, where)
        for number, (known, _) in enumerate(member.waits):
            if known is parent:
                return ParentResult(number)
        member.waits.append((parent, place.run_when))
        return ParentResult(len(member.waits) - 1)

    args = replaced(tuple(given.args), reference)
    kwargs = replaced(dict(given.kwargs), reference)
    member.call = Call(given.task, args, kwargs)
    return member


def _parent(stand_in: Any, place: Place, where: str) -> Member:
    if isinstance(stand_in, Previous):
        if place.previous is None:
            raise ValueError(f"{where} has a Previous() in its arguments, but no step before it.")
        return place.previous
    if isinstance(stand_in, ResultOf):
        step = stand_in.step
        if type(step) is not int or not 0 <= step < len(place.steps):
            raise ValueError(
                f"{where} refers to ResultOf({step!r}), but there are {len(place.steps)} steps "
                "before it, counted from 0."
            )
        return place.steps[step]
    assert isinstance(stand_in, NodeResult)
    member = place.nodes.get(stand_in.node)
    if member is None:
        raise InvalidTask(f"{where} refers to the result of {stand_in.node!r}, which is no node of "
                          "the same workflow.")  # fmt: skip
    return member
