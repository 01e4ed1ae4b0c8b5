"""The graph of a batch as an SVG element, without scripts and styles of its own.

Colours are variables of the admin's style sheets, which differ in the dark mode. They are values of
attributes, which a content security policy without inline styles lets pass.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..batches.nodes import Node
from ..batches.picture import Edge
from . import texts

#: Most nodes beside each other; a layer with more has several rows.
ABREAST = 5
WIDTH, HEIGHT, GAP, BETWEEN_ROWS, BETWEEN_LAYERS, MARGIN = 160, 44, 14, 14, 48, 8
#: Most columns of a label; letters of East Asia take two.
COLUMNS = 21


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


class Style(NamedTuple):
    """How nodes in a state are drawn."""

    fill: str
    stroke: str
    dashes: str = ""
    ink: str = "--body-fg"


STYLES = {
    "waiting": Style("--body-bg", "--body-quiet-color", "4 3"),
    "pending": Style("--body-bg", "--body-quiet-color"),
    "running": Style("--selected-bg", "--link-fg"),
    "succeeded": Style("--message-success-bg", "--body-quiet-color"),
    "failed": Style("--message-error-bg", "--error-fg"),
    "cancelled": Style("--message-warning-bg", "--error-fg", "4 3"),
    "discarded": Style("--darkened-bg", "--body-quiet-color", "1 3", "--body-quiet-color"),
    "skipped": Style("--darkened-bg", "--body-quiet-color", "1 3", "--body-quiet-color"),
    "unknown": Style("--body-bg", "--error-fg", "1 3"),
}


class Spot(NamedTuple):
    """The upper left corner of a node, and its row."""

    x: float
    y: float
    row: int

    @property
    def middle(self) -> float:
        return self.x + WIDTH / 2


def graph_svg(nodes: Sequence[Node], edges: Sequence[Edge], urls: Mapping[int, str]) -> SafeString:
    """Return the picture; ``urls`` are the pages that nodes link to, by their keys."""
    spots = _spots([node.key for node in nodes], edges)
    width = max(spot.x for spot in spots.values()) + WIDTH + MARGIN
    height = max(spot.y for spot in spots.values()) + HEIGHT + MARGIN
    parts = [
        *(_line(edge, spots) for edge in edges),
        *(_word(word, spots[key]) for key, word in _unusual(edges)),
        *(_box(node, spots[node.key], urls.get(node.key, "")) for node in nodes),
    ]
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label="Graph" width="{}" '
        'height="{}" viewBox="0 0 {} {}" font-size="12" fill="none">{}{}</svg>',
        f"{width:g}", f"{height:g}", f"{width:g}", f"{height:g}", _ARROW,
        format_html_join("", "{}", ((part,) for part in parts)),
    )  # fmt: skip


def _spots(keys: Sequence[int], edges: Sequence[Edge]) -> dict[int, Spot]:
    layers = layers_of(keys, [edge[:2] for edge in edges])
    widest = max(len(row) for layer in layers for row in layer)
    spots: dict[int, Spot] = {}
    number, y = 0, float(MARGIN)
    for layer in layers:
        for row in layer:
            # The columns of a layer with several rows are below each other, and lines between them.
            columns = widest if len(layer) > 1 else len(row)
            x = MARGIN + (widest - columns) * (WIDTH + GAP) / 2
            for place, key in enumerate(row):
                spots[key] = Spot(x + place * (WIDTH + GAP), y, number)
            number, y = number + 1, y + HEIGHT + BETWEEN_ROWS
        y += BETWEEN_LAYERS - BETWEEN_ROWS
    return spots


_ARROW = format_html(
    '<defs><marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="var(--body-quiet-color)"/></marker></defs>',
    "arrow",
)


def _line(edge: Edge, spots: Mapping[int, Spot]) -> SafeString:
    return format_html(
        '<path d="{}" stroke="var(--body-quiet-color)" stroke-dasharray="{}" '
        'marker-end="url(#arrow)"><title>{}</title></path>',
        _path(spots[edge.parent], spots[edge.child]),
        "5 3" if edge.unusual else "none", f"after {edge.run_when or 'the end'}",
    )  # fmt: skip


def _path(parent: Spot, child: Spot) -> str:
    start, top, end, bottom = parent.middle, parent.y + HEIGHT, child.middle, child.y
    if child.row - parent.row <= 1:
        bend = max((bottom - top) / 2, 20)
        return (
            f"M{start:g} {top:g}C{start:g} {top + bend:g} {end:g} {bottom - bend:g} "
            f"{end:g} {bottom:g}"
        )
    # Past the nodes of the rows between them.
    aside = parent.x + WIDTH + GAP / 2 if end >= start else parent.x - GAP / 2
    return (
        f"M{start:g} {top:g}C{start:g} {top + BETWEEN_ROWS:g} {aside:g} {top:g} "
        f"{aside:g} {top + BETWEEN_ROWS:g}V{bottom - BETWEEN_ROWS:g}"
        f"C{aside:g} {bottom:g} {end:g} {bottom - BETWEEN_ROWS:g} {end:g} {bottom:g}"
    )


def _word(run_when: str, spot: Spot) -> SafeString:
    """Return how what a node waits for has to end, above it."""
    return format_html(
        '<text x="{}" y="{}" text-anchor="middle" font-size="11" fill="var(--body-fg)" '
        'stroke="var(--body-bg)" stroke-width="4" paint-order="stroke">{}</text>',
        f"{spot.middle:g}", f"{spot.y - 12:g}", run_when,
    )  # fmt: skip


def _unusual(edges: Sequence[Edge]) -> list[tuple[int, str]]:
    """Return the nodes that do not wait for successes, with what they wait for."""
    found = ((edge.child, edge.unusual) for edge in edges if edge.unusual)
    return list(dict.fromkeys(found))


def _box(node: Node, spot: Spot, url: str) -> SafeString:
    style = STYLES[node.state]
    number = f"#{node.job_id}" if node.job_id is not None else ""
    if node.batch_id is not None:
        number = f"{texts.name(node.kind)} #{node.batch_id}"
    box = format_html(
        '<title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="4" fill="var({})" '
        'stroke="var({})" stroke-width="{}" stroke-dasharray="{}"/>'
        '<text x="{}" y="{}" text-anchor="middle" fill="var({})">{}</text>'
        '<text x="{}" y="{}" text-anchor="middle" font-size="11" fill="var({})">{}</text>',
        f"{texts.line(node.label)[:300]}: {node.state}",
        f"{spot.x:g}", f"{spot.y:g}", WIDTH, HEIGHT, style.fill, style.stroke,
        2 if node.batch_id is not None or node.state == "running" else 1, style.dashes or "none",
        f"{spot.middle:g}", f"{spot.y + 18:g}", style.ink, fitting(texts.line(node.label)),
        f"{spot.middle:g}", f"{spot.y + 34:g}", "--body-quiet-color",
        " ".join(filter(None, (node.state, number))),
    )  # fmt: skip
    return format_html('<a href="{}">{}</a>', url, box) if url else format_html("<g>{}</g>", box)


def fitting(text: str) -> str:
    """Return as much of a text as a node has room for."""
    room = COLUMNS
    for position, character in enumerate(text):
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            return f"{text[: position - 1]}…"
    return text
