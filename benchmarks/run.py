"""One run: all competitors that support one database, in turn, round by round."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.adapters import Adapter
from benchmarks.competitor import Competitor
from benchmarks.databases import DatabaseServer
from benchmarks.options import Options
from benchmarks.sandbox import Failure, Figures, Sandbox


@dataclass(kw_only=True)
class Findings:
    """The results of one run, by competitor."""

    options: Options
    about: str
    """The database's version and durability."""
    figures: dict[str, list[Figures]]
    """One for each round."""
    notes: dict[str, str]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Competitors that cannot run on this database, and the reasons."""
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def run(options: Options, adapters: Sequence[Adapter], server: DatabaseServer) -> Findings:
    """Measure the competitors, leaving out any that fails from then on."""
    begin = time.monotonic()
    able = [adapter for adapter in adapters if options.database in adapter.databases]
    findings = Findings(
        options=options,
        about=server.about,
        figures={adapter.name: [] for adapter in able},
        notes={adapter.name: adapter.note for adapter in able},
        absent={each.name: each.elsewhere for each in adapters if each not in able},
    )
    stages: list[Sandbox] = []
    try:
        for adapter in able:
            say(f"{options.database}: preparing {adapter.name}")
            try:
                sandbox = Sandbox(adapter, options, server)
            except (Failure, RuntimeError, OSError) as error:
                findings.failures[adapter.name] = str(error)
            else:
                stages.append(sandbox)
                findings.versions[adapter.name] = sandbox.versions
        _measure([Competitor(sandbox) for sandbox in stages], findings)
    finally:
        for sandbox in stages:
            sandbox.database.remove()
    findings.seconds = time.monotonic() - begin
    return findings


def _measure(competitors: list[Competitor], findings: Findings) -> None:
    rounds = findings.options.rounds
    for number in range(rounds):
        # Nobody is always the first after a pause, or always after the same other one, whose rows
        # the server may still be writing or cleaning up.
        turn = number % len(competitors) if competitors else 0
        order = competitors[turn:] + competitors[:turn]
        for competitor in reversed(order) if number % 2 else order:
            name = competitor.adapter.name
            say(f"{findings.options.database}: round {number + 1} of {rounds}: {name}")
            try:
                findings.figures[name].append(competitor.measure(counting=number == 0))
            except Failure as error:
                findings.failures[name] = str(error)


def say(text: str) -> None:
    """Print the progress."""
    print(text, file=sys.stderr, flush=True)
