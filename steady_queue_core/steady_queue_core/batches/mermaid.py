"""Mermaid: the picture of a batch as the text of a flowchart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .nodes import Node
from .picture import Edge, Picture

#: Longer labels are cut.
LONGEST = 80
#: All but letters, digits, and what may be between two of them. It is written by its number, so
#: that it cannot end the label, or mean something to Mermaid, or to the Markdown in it.
SPECIAL = re.compile(r"(?!(?<=[^\W_])[._,/-](?=[^\W_]))[\W_]")

STYLES = {
    "waiting": "stroke-dasharray:4 3",
    "pending": "stroke-width:1px",
    "running": "stroke:#2a7ae2,stroke-width:2px",
    "succeeded": "stroke:#2e8540,stroke-width:2px",
    "failed": "stroke:#c9302c,stroke-width:2px",
    "cancelled": "stroke:#c9302c,stroke-dasharray:4 3",
    "discarded": "stroke-dasharray:1 3",
    "skipped": "stroke-dasharray:1 3",
    "unknown": "stroke-width:1px",
}


def mermaid_of(picture: Picture, total: int) -> str:
    """Return a flowchart of a batch of ``total`` members."""
    lines = ["flowchart TD"]
    lines += _members(picture, None, "    ", total)
    lines += [f"    {_arrow(edge)}" for edge in picture.edges]
    used = dict.fromkeys(node.state for node in picture.nodes)
    lines += [f"    classDef {state} {STYLES[state]}" for state in used]
    return "\n".join(lines) + "\n"


def _members(
    picture: Picture, key: int | None, indent: str, total: int | None = None
) -> Iterator[str]:
    nodes = picture.inside(key)
    for node in nodes:
        if picture.inside(node.key):
            yield f'{indent}subgraph m{node.key}["{label(node)}"]'
            yield from _members(picture, node.key, indent + "    ")
            yield f"{indent}end"
            yield f"{indent}class m{node.key} {node.state}"
        else:
            yield f'{indent}m{node.key}["{label(node)}"]:::{node.state}'
    if key in picture.cut:
        more = "more" if total is None else f"{max(total - len(nodes), 1):,} more"
        yield f'{indent}more{key or ""}["... and {more}"]'


def label(node: Node) -> str:
    """Return the label of a node, so that Mermaid takes none of it for its own."""
    text = node.label if len(node.label) <= LONGEST else node.label[: LONGEST - 3] + "..."
    return SPECIAL.sub(_numbered, text).strip() or f"member {node.key}"


def _arrow(edge: Edge) -> str:
    return f"m{edge.parent} -->{f'|{edge.unusual}|' if edge.unusual else ''} m{edge.child}"


def _numbered(found: re.Match[str]) -> str:
    character = found[0]
    return f"#{ord(character)};" if character.isprintable() and character != " " else " "
