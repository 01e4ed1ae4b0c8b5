"""The table that is printed at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .judge import Verdict

HEAD = (
    *("engine", "fault", "acknowledged", "lost", "twice", "doubled", "failed", "stateless"),
    *("unfinished", "over limit", "slots doubled", "slots missed", "stored twice", "silence s"),
    *("start after promotion s", "result"),
)


@dataclass(frozen=True)
class Row:
    """A fault on an engine: its verdict, or why there is none."""

    engine: str
    fault: str
    verdict: Verdict | None = None
    #: Why it was not run, or what went wrong with the cluster itself.
    problem: str = ""
    is_failed: bool = False

    @property
    def is_good(self) -> bool:
        return not self.is_failed and (self.verdict is None or not self.verdict.broken)

    def cells(self) -> list[str]:
        found = self.verdict
        if found is None:
            return [self.engine, self.fault, *[""] * (len(HEAD) - 3), self.problem]
        after = "" if found.after_promotion is None else f"{found.after_promotion:.1f}"
        numbers = (
            *(found.acknowledged, found.lost, found.twice, found.doubled, found.failed),
            *(found.stateless, found.unfinished, found.over_limit, found.slots_doubled),
            *(found.slots_missed, found.stored_twice),
        )
        broken = ", ".join(f"{name}: {count}" for name, count in found.broken.items())
        return [
            *(self.engine, self.fault, *map(str, numbers), f"{found.silence:.1f}", after),
            self.problem or broken or "kept",
        ]


def render(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = [list(HEAD), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rule = ["-" * width for width in widths]
    padded = (
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in [lines[0], rule, *lines[1:]]
    )
    return "\n".join(f"| {line} |" for line in padded)
