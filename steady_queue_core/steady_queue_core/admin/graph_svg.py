"""The graph of a batch as an SVG element, without scripts and styles of its own.

Colours are variables of the admin's style sheets, which differ in the dark mode. They are values of
attributes, which a content security policy without inline styles lets pass.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..batches.nodes import Node
from ..batches.picture import Edge
from ..dialects.membership import RunWhen
from . import texts
from .layered_layout import rows_of

WIDTH, HEIGHT, GAP, BETWEEN_ROWS, BETWEEN_LAYERS, MARGIN = 168, 44, 16, 14, 44, 8
#: Most columns of a label; letters of East Asia take two.
COLUMNS = 22


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
    """The upper left corner of a node."""

    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.x + WIDTH / 2


def graph_svg(nodes: Sequence[Node], edges: Sequence[Edge], urls: Mapping[int, str]) -> SafeString:
    """Return the picture; ``urls`` are the pages that nodes link to, by their keys."""
    rows, first = rows_of([node.key for node in nodes], [edge[:2] for edge in edges])
    width = max(map(len, rows)) * (WIDTH + GAP) - GAP + 2 * MARGIN
    spots: dict[int, Spot] = {}
    y = MARGIN - BETWEEN_LAYERS
    for number, row in enumerate(rows):
        y += BETWEEN_LAYERS if number in first else BETWEEN_ROWS
        x = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        for place, key in enumerate(row):
            spots[key] = Spot(x + place * (WIDTH + GAP), y)
        y += HEIGHT
    lines = format_html_join("", "{}", ((_line(edge, spots),) for edge in edges))
    boxes = format_html_join(
        "", "{}", ((_box(node, spots[node.key], urls.get(node.key, "")),) for node in nodes)
    )
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label="Graph" width="{}" '
        'height="{}" viewBox="0 0 {} {}" font-size="12" fill="none">{}{}{}</svg>',
        f"{width:g}", f"{y + MARGIN:g}", f"{width:g}", f"{y + MARGIN:g}", _ARROW, lines, boxes,
    )  # fmt: skip


_ARROW = format_html(
    '<defs><marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="var(--body-quiet-color)"/></marker></defs>',
    "arrow",
)


def _line(edge: Edge, spots: Mapping[int, Spot]) -> SafeString:
    parent, child = spots[edge.parent], spots[edge.child]
    top, bottom = parent.y + HEIGHT, child.y
    bend = max((bottom - top) / 2, 20)
    is_usual = edge.run_when in ("", RunWhen.SUCCESS.name.lower())
    path = (
        f"M{parent.middle:g} {top:g}C{parent.middle:g} {top + bend:g} "
        f"{child.middle:g} {bottom - bend:g} {child.middle:g} {bottom:g}"
    )
    drawn = format_html(
        '<path d="{}" stroke="var(--body-quiet-color)" stroke-dasharray="{}" '
        'marker-end="url(#arrow)"><title>{}</title></path>',
        path, "none" if is_usual else "5 3", f"after {edge.run_when or 'the end'}",
    )  # fmt: skip
    if is_usual:
        return drawn
    return format_html(
        '{}<text x="{}" y="{}" text-anchor="middle" font-size="11" '
        'fill="var(--body-quiet-color)">{}</text>',
        drawn, f"{child.middle:g}", f"{bottom - 12:g}", edge.run_when,
    )  # fmt: skip


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
