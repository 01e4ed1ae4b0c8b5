"""Where the nodes of a graph are drawn: in layers, each below what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

#: Most nodes beside each other; a layer with more has several rows.
ABREAST = 5


def layers_of(keys: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[list[list[int]]]:
    """Return the layers from top to bottom, each in rows.

    A node is as far down as the longest way to it. ``edges`` are pairs of parent and child; what is
    in a cycle, as only damaged rows are, is in the last layer.
    """
    return [
        [list(layer[start : start + ABREAST]) for start in range(0, len(layer), ABREAST)]
        for layer in _ordered(_layers(keys, edges), edges)
    ]


def _layers(keys: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    children: dict[int, list[int]] = {key: [] for key in keys}
    awaited = dict.fromkeys(keys, 0)
    for parent, child in edges:
        children[parent].append(child)
        awaited[child] += 1
    layers: list[list[int]] = []
    ready = [key for key in keys if not awaited[key]]
    while ready:
        layers.append(ready)
        following = []
        for key in ready:
            for child in children[key]:
                awaited[child] -= 1
                if not awaited[child]:
                    following.append(child)
        ready = following
    circular = [key for key in keys if awaited[key]]
    return [*layers, circular] if circular else layers


def _ordered(
    layers: Sequence[list[int]], edges: Sequence[tuple[int, int]]
) -> Iterator[Sequence[int]]:
    """Yield the layers, each in the order of the middle of what its nodes wait for."""
    parents: dict[int, list[int]] = {}
    for parent, child in edges:
        parents.setdefault(child, []).append(parent)
    places: dict[int, float] = {}
    for layer in layers:
        middle = {key: _middle(parents.get(key, ()), places) for key in layer}
        ordered = sorted(layer, key=lambda key: (middle[key], key))
        count = len(ordered)
        places |= {key: (place + 0.5) / count for place, key in enumerate(ordered)}
        yield ordered


def _middle(keys: Sequence[int], places: Mapping[int, float]) -> float:
    found = [places[key] for key in keys if key in places]
    return sum(found) / len(found) if found else 0.5
