"""The command line: measure the contenders in turn, print one table."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, table
from benchmarks.adapters import Adapter, contenders
from benchmarks.contender import Contender, Failure
from benchmarks.options import QUICK, Options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the harness; 0 when every measure of every contender was taken."""
    parsed = _parser().parse_args(arguments)
    adapters = contenders()
    if parsed.list:
        print("\n".join(f"{name:<20}{adapter.note}" for name, adapter in adapters.items()))
        return 0
    chosen = _chosen(parsed.only, adapters)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the workers on the way out
    directory = Path(tempfile.mkdtemp(prefix="steady-queue-bench-", dir=parsed.directory))
    try:
        return _run(_options(parsed, directory), chosen, parsed.json)
    finally:
        if parsed.keep:
            _say(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


def _run(options: Options, adapters: Sequence[Adapter], report: Path | None) -> int:
    begin = time.monotonic()
    machine.keep_to_cores(options.processes)
    about = machine.describe(options.directory, options.python)
    figures: dict[str, list[dict[str, float]]] = {adapter.name: [] for adapter in adapters}
    failures: dict[str, str] = {}
    ready: dict[str, Contender] = {}
    for adapter in adapters:
        _say(f"preparing {adapter.name}")
        try:
            ready[adapter.name] = Contender(adapter, options)
        except (Failure, RuntimeError, OSError) as error:
            failures[adapter.name] = str(error)
    for number in range(options.rounds):
        order = list(ready.values())
        # Nobody is always the first after a pause, or always after the same other one.
        order = order[number % len(order) :] + order[: number % len(order)] if order else []
        for contender in order:
            _say(f"round {number + 1} of {options.rounds}: {contender.adapter.name}")
            try:
                figures[contender.adapter.name].append(contender.measure(counting=number == 0))
            except Failure as error:
                failures[contender.adapter.name] = str(error)
    seconds = time.monotonic() - begin
    versions = {name: contender.versions for name, contender in ready.items()}
    print(_head(options, about, seconds))
    print()
    print(table.render(figures))
    print()
    print(_foot(options, adapters, versions, figures, failures))
    if report:
        content = {
            "options": _plain(options),
            "machine": about,
            "seconds": seconds,
            "versions": versions,
            "figures": figures,
            "failures": failures,
        }
        report.write_text(json.dumps(content, indent=2) + "\n")
    return 1 if failures else 0


def _head(options: Options, about: dict[str, object], seconds: float) -> str:
    return (
        f"{options.database} {about['sqlite']}, synchronous={options.synchronous},"
        f" fdatasync {about['fdatasync_ms']} ms; Python {about['python']}, {about['system']},"
        f" {about['cores']} cores; load before: {about['load_before']}\n"
        f"{options.processes} worker processes; {options.jobs:,} jobs for each drain, cut off after"
        f" {options.limit:g} s; {options.rounds} round(s) in turn, {seconds:.0f} s\n"
        f"each cell: median, ratio to {table.BASE}; below it: the lowest and the highest round"
    )


def _foot(
    options: Options,
    adapters: Sequence[Adapter],
    versions: dict[str, dict[str, str]],
    figures: dict[str, list[dict[str, float]]],
    failures: dict[str, str],
) -> str:
    lines = []
    for adapter in adapters:
        installed = ", ".join(f"{k} {v}" for k, v in versions.get(adapter.name, {}).items())
        lines.append(f"{adapter.name}: {adapter.note} ({installed})")
        for word, key in (("no-op", "drain"), ("coroutine", "drain_coroutine")):
            for rounds in figures[adapter.name]:
                lines += _doubts(word, key, rounds, options.jobs)
    for name, reason in failures.items():
        lines.append(f"FAILED {name}: {reason}")
    return "\n".join(lines)


def _doubts(word: str, key: str, figures: dict[str, float], jobs: int) -> list[str]:
    """Say what a reader should not overlook in one drain."""
    if key not in figures:
        return []
    lines = []
    if left := figures[f"{key}_left"]:
        lines.append(
            f"    {word} drain cut off: {figures[f'{key}_ran']:,.0f} jobs ran, {left:,.0f} left"
        )
    elif (ran := figures[f"{key}_ran"]) != jobs:
        lines.append(f"    {word} drain: {ran:,.0f} runs of {jobs:,} jobs")
    if figures[f"{key}_processes"] < 2:
        lines.append(f"    {word} drain: only one process got jobs")
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = argparse.SUPPRESS
    parser.add_argument("--quick", action="store_true", help="briefly, to see that it works")
    parser.add_argument("--only", metavar="NAME,...", help="measure these contenders alone")
    parser.add_argument("--list", action="store_true", help="print the contenders and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument("--keep", action="store_true", help="keep the throw-away projects")
    parser.add_argument("--directory", metavar="DIR", help="make them here: which disk is measured")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environments")
    parser.add_argument("--database", default=default, choices=("sqlite",))
    parser.add_argument("--synchronous", default=default, choices=("NORMAL", "FULL"))
    for name, kind, text in (
        ("rounds", int, "times that every contender is measured"),
        ("jobs", int, "jobs in the queue when a drain begins"),
        ("limit", float, "seconds after which a drain is cut off"),
        ("samples", int, "jobs to measure the latency with"),
        ("idle", float, "seconds over which idle CPU is measured"),
        ("poll", float, "seconds between polls of contenders that poll"),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=text)
    return parser


def _options(parsed: argparse.Namespace, directory: Path) -> Options:
    given = {name: value for name, value in vars(parsed).items() if name in Options.__annotations__}
    return Options(**{**(QUICK if parsed.quick else {}), **given, "directory": directory})


def _chosen(only: str | None, adapters: dict[str, Adapter]) -> list[Adapter]:
    if only is None:
        return list(adapters.values())
    names = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in names if name not in adapters]:
        known = ", ".join(adapters)
        raise SystemExit(f"unknown contender: {', '.join(unknown)}; there are: {known}")
    return [adapters[name] for name in names]


def _plain(options: Options) -> dict[str, object]:
    return {
        name: getattr(options, name)
        for name in Options.__annotations__
        if name not in ("directory", "python")
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
