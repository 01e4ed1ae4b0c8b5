"""The places of jobs in a graph, and which results a job is to be given: signed with its call."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arguments import ParentResult
from ..dialects.membership import CHAIN
from ..payloads import PayloadSignatureError
from .graph import Graph, Member

#: What the value of a member is made of: the number of a job, or ``"3-7"`` or a list for a group;
#: after the name of its graph and a dot, if that is another one. ``None``: it is not known.
Shape = int | str | list[Any] | None


@dataclass(eq=False, slots=True)
class Places:
    """Numbers the jobs of a graph that is about to be stored, unlike those of any other graph."""

    graph: Graph
    #: Returns the shape of a member that was stored with another graph.
    find_shape: Callable[[Member], Shape]
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    _numbers: dict[int, int] = field(default_factory=dict)
    _own: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        members = [member for _, member in self.graph.walk()]
        calls = [member for member in members if member.call is not None]
        self._numbers = {id(member): number for number, member in enumerate(calls)}
        self._own = {id(member) for member in members}

    def node(self, member: Member) -> str:
        """Return the place of a job."""
        return f"{self.name}.{self._numbers[id(member)]}"

    def sources(self, member: Member) -> dict[str, Any]:
        """Return what each result among the arguments of a job is made of, by its number."""
        assert member.call is not None
        numbers = referred_to((member.call.args, member.call.kwargs))
        return {str(number): self._shape(member.waits[number][0]) for number in sorted(numbers)}

    def shape(self, member: Member) -> Shape:
        """Return what the value of a member is made of, for jobs of other graphs."""
        return placed_in(self.name, self._shape(member))

    def _shape(self, member: Member) -> Shape:
        if id(member) not in self._own:
            return self.find_shape(member)
        if member.graph is None:
            return self._numbers[id(member)]
        members = member.graph.members
        if member.graph.kind == CHAIN and members:
            return self._shape(members[-1])
        shapes = [self._shape(each) for each in members]
        first = shapes[0] if shapes else None
        is_run = isinstance(first, int) and shapes == [*range(first, first + len(shapes))]
        return f"{first}-{first + len(shapes) - 1}" if is_run and isinstance(first, int) else shapes


def referred_to(value: Any) -> set[int]:
    """Return the numbers of the results that these arguments refer to."""
    if isinstance(value, ParentResult):
        return {value.number}
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return {number for each in value for number in referred_to(each)}
    return set()


def placed_in(graph: str, shape: Shape) -> Shape:
    """Return a shape with the name of its graph."""
    if isinstance(shape, list | tuple):
        return [placed_in(graph, each) for each in shape]
    return shape if shape is None or "." in str(shape) else f"{graph}.{shape}"


def shapes_in(shape: Any) -> list[Any]:
    """Return the shapes of the members of a group. Raises ``PayloadSignatureError`` for what is no
    group."""
    if isinstance(shape, list | tuple):
        return list(shape)
    graph, dot, numbers = str(shape).rpartition(".")
    first, dash, last = numbers.partition("-")
    if not (isinstance(shape, str) and dash and first.isdecimal() and last.isdecimal()):
        raise other_result()
    found: list[Any] = list(range(int(first), int(last) + 1))
    return [placed_in(graph, each) for each in found] if dot else found


def other_result() -> PayloadSignatureError:
    return PayloadSignatureError(
        "It is that of another job than the one that the signed call refers to: the rows of "
        "dependencies, members or batches were changed outside of the queue."
    )
