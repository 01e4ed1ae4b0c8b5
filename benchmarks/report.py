"""The results of a run, as text around a table and as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import table
from benchmarks.drains import DRAINS, Drain
from benchmarks.options import Options
from benchmarks.run import Findings
from benchmarks.sandbox import Figures


def text(findings: Findings, machine: Mapping[str, object]) -> str:
    """Return the table, with notes for the reader above and below it."""
    return "\n\n".join(
        [_head(findings, machine), table.render(findings.figures), "\n".join(_foot(findings))]
    )


def plain(findings: Findings) -> dict[str, object]:
    """Return everything for JSON."""
    return {
        "options": _plain(findings.options),
        "about": findings.about,
        "seconds": findings.seconds,
        "versions": findings.versions,
        "figures": findings.figures,
        "absent": findings.absent,
        "failures": findings.failures,
    }


def _head(findings: Findings, machine: Mapping[str, object]) -> str:
    options = findings.options
    return (
        f"{findings.about}\n"
        f"fdatasync {machine['fdatasync_ms']} ms; Python {machine['python']}, {machine['system']},"
        f" {machine['cores']} cores; load before: {machine['load_before']}\n"
        f"{options.processes} worker processes; {options.jobs:,} jobs for each drain, cut off after"
        f" {options.limit:g} s; {options.rounds} round(s) in turn, {findings.seconds:.0f} s\n"
        f"each cell: median, ratio to {table.BASE}; below it: the lowest and the highest round"
    )


def _foot(findings: Findings) -> list[str]:
    lines = []
    for name, note in findings.notes.items():
        installed = ", ".join(f"{k} {v}" for k, v in findings.versions.get(name, {}).items())
        lines.append(f"{name}: {note} ({installed})")
        for drain in DRAINS:
            for figures in findings.figures[name]:
                lines += _doubts(drain, figures)
    lines += [f"n/a {name}: {reason}" for name, reason in findings.absent.items()]
    lines += [f"FAILED {name}: {reason}" for name, reason in findings.failures.items()]
    return lines


def _doubts(drain: Drain, figures: Figures) -> list[str]:
    """Return the caveats of one drain."""
    word, key = drain.title, drain.key
    if key not in figures:
        return []
    jobs = figures[f"{key}_jobs"]
    lines = []
    if left := figures[f"{key}_left"]:
        lines.append(
            f"    {word} drain cut off: {figures[f'{key}_ran']:,.0f} jobs ran, {left:,.0f} left"
        )
    elif (ran := figures[f"{key}_ran"]) != jobs:
        lines.append(f"    {word} drain: {ran:,.0f} runs of {jobs:,} jobs")
    if figures[f"{key}_processes"] < 2 and drain.needs != "limits":
        lines.append(f"    {word} drain: only one process got jobs")
    return lines


def _plain(options: Options) -> dict[str, object]:
    return {
        name: getattr(options, name)
        for name in Options.__annotations__
        if name not in ("directory", "python")
    }
