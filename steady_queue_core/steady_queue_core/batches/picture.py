"""Picture: some members of a batch, of those in it, and what waits for what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..dialects.membership import RunWhen
from ..models import Dependency
from .members import MOST_BATCHES, members_of
from .nodes import Node, read_nodes

#: Most members and dependencies of a picture.
MOST_NODES, MOST_EDGES = 200, 1000
#: How deep batches in batches are looked into.
DEEPEST = 5

Reader = Callable[[str, Collection[int]], list[Node]]


class Edge(NamedTuple):
    """One member waits for another one."""

    parent: int
    child: int
    #: How the parent has to end, as ``run_when`` says it.
    run_when: str

    @property
    def unusual(self) -> str:
        """How the parent has to end; nothing if that is well, as a rule, or a damaged value."""
        return "" if self.run_when == RunWhen.SUCCESS.name.lower() else self.run_when


@dataclass(frozen=True)
class Picture:
    """Members, each after the one that it is in, and what waits for what."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    #: The members not all of whose own are there; ``None`` for the batch itself.
    cut: Collection[int | None]

    def inside(self, key: int | None) -> list[Node]:
        """Return the nodes in a node; ``None``: in none."""
        return [node for node in self.nodes if node.inside == key]


def read_picture(
    using: str, batch_id: int, *, levels: int = DEEPEST, read: Reader = read_nodes
) -> Picture:
    """Return a picture of a batch, by a number of statements that does not grow with it.

    Batches in it are looked into as deep as ``levels`` says, the rest are nodes like any other.
    ``read`` returns members by their ids.
    """
    nodes: list[Node] = []
    cut: set[int | None] = set()
    seen, level = {batch_id}, dict[int, int | None]({batch_id: None})
    for _ in range(levels):
        left = MOST_NODES - len(nodes)
        if not level or not left:
            break
        inside: dict[int, int | None] = {}
        for each, keys in members_of(using, [*level][:MOST_BATCHES], left + 1).items():
            shown = keys[: left - len(inside)]
            inside |= dict.fromkeys(shown, level[each])
            if len(keys) > len(shown) and (shown or level[each] is None):
                cut.add(level[each])
        found = [replace(node, inside=inside[node.key]) for node in read(using, inside)]
        nodes += found
        level = {
            node.batch_id: node.key for node in found
            if node.batch_id is not None and node.batch_id not in seen
        }  # fmt: skip
        seen |= level.keys()
    return Picture(nodes, _edges(using, nodes, read), cut)


def _edges(using: str, nodes: Sequence[Node], read: Reader) -> list[Edge]:
    opened = {node.inside for node in nodes}
    targets = _first_jobs(using, [node for node in nodes if node.key not in opened], read)
    targets |= {node.job_id: node.key for node in nodes if node.job_id is not None}
    around = {node.key: node.inside for node in nodes}
    rows = Dependency.objects.using(using).filter(job_id__in=targets, parent_id__in=around)
    found = rows.values_list("parent_id", "job_id", "run_when")[:MOST_EDGES]
    edges = {Edge(parent, targets[job_id], run_when_of(when)) for parent, job_id, when in found}
    return [each for each in sorted(edges) if not _holds(each.parent, each.child, around)]


def _first_jobs(using: str, nodes: Sequence[Node], read: Reader) -> dict[int, int]:
    """Return the first jobs of the batches that are drawn as one node, with the keys of these:
    what they wait for, the whole does."""
    jobs: dict[int, int] = {}
    drawn = {node.first: node.key for node in nodes if node.first is not None}
    for _ in range(DEEPEST):
        if not drawn:
            break
        found = read(using, drawn)
        jobs |= {node.job_id: drawn[node.key] for node in found if node.job_id is not None}
        drawn = {node.first: drawn[node.key] for node in found if node.first is not None}
    return jobs


def _holds(outer: int, inner: int, around: Mapping[int, int | None]) -> bool:
    """Whether a node is in another one, or the same; no healthy one waits for such a one."""
    at: int | None = inner
    while at is not None and at != outer:
        at = around[at]
    return at == outer


def run_when_of(run_when: object) -> str:
    """Return how a member has to end as ``run_when`` says it; nothing for a damaged value."""
    try:
        return RunWhen(run_when).name.lower()  # type: ignore[arg-type]  # Whatever the row holds.
    except ValueError:
        return ""
