"""One run: every contender that can on one database, in turn, round by round."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.adapters import Adapter
from benchmarks.contender import Contender
from benchmarks.databases import Home
from benchmarks.options import Options
from benchmarks.stage import Failure, Figures, Stage


@dataclass(kw_only=True)
class Findings:
    """What one run has found, by the names of the contenders."""

    options: Options
    about: str
    """The database's version and durability."""
    figures: dict[str, list[Figures]]
    """One for each round."""
    notes: dict[str, str]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Who cannot run on this database, and why."""
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def run(options: Options, adapters: Sequence[Adapter], home: Home) -> Findings:
    """Measure the contenders; who fails is left out from then on."""
    begin = time.monotonic()
    able = [adapter for adapter in adapters if options.database in adapter.databases]
    findings = Findings(
        options=options,
        about=home.about,
        figures={adapter.name: [] for adapter in able},
        notes={adapter.name: adapter.note for adapter in able},
        absent={each.name: each.elsewhere for each in adapters if each not in able},
    )
    stages: list[Stage] = []
    try:
        for adapter in able:
            say(f"{options.database}: preparing {adapter.name}")
            try:
                stage = Stage(adapter, options, home)
            except (Failure, RuntimeError, OSError) as error:
                findings.failures[adapter.name] = str(error)
            else:
                stages.append(stage)
                findings.versions[adapter.name] = stage.versions
        _measure([Contender(stage) for stage in stages], findings)
    finally:
        for stage in stages:
            stage.database.remove()
    findings.seconds = time.monotonic() - begin
    return findings


def _measure(contenders: list[Contender], findings: Findings) -> None:
    rounds = findings.options.rounds
    for number in range(rounds):
        # Nobody is always the first after a pause, or always after the same other one.
        turn = number % len(contenders) if contenders else 0
        for contender in contenders[turn:] + contenders[:turn]:
            name = contender.adapter.name
            say(f"{findings.options.database}: round {number + 1} of {rounds}: {name}")
            try:
                findings.figures[name].append(contender.measure(counting=number == 0))
            except Failure as error:
                findings.failures[name] = str(error)


def say(text: str) -> None:
    """Tell whoever waits what is going on."""
    print(text, file=sys.stderr, flush=True)
