"""The command line: measure the competitors in turn, print one table for each database."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import machine, report
from benchmarks.adapters import Adapter, competitors
from benchmarks.databases import NAMES
from benchmarks.databases.servers import open_server
from benchmarks.options import QUICK, Options
from benchmarks.run import Findings, run, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the harness; 0 when every measure of every competitor was taken."""
    parsed = _parser().parse_args(arguments)
    adapters = competitors()
    if parsed.list:
        for name, adapter in adapters.items():
            print(f"{name:<22}{', '.join(adapter.databases)}: {adapter.note}")
        return 0
    chosen = _chosen(parsed.only, adapters)
    databases = _listed(parsed.database, NAMES, "database")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the workers on the way out
    directory = Path(tempfile.mkdtemp(prefix="steady-queue-bench-", dir=parsed.directory))
    try:
        return _run(_options(parsed, directory), databases, chosen, parsed.json)
    finally:
        if parsed.keep:
            say(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


def _run(
    options: Options, databases: Sequence[str], adapters: Sequence[Adapter], file: Path | None
) -> int:
    machine.keep_to_cores(options.processes)
    about = machine.describe(options.directory, options.python)
    found: list[Findings] = []
    missing = False
    for database in databases:
        here = replace(options, database=database)
        try:
            with open_server(here, str(about["sqlite"])) as opened:
                found.append(run(here, adapters, opened))
        except RuntimeError as error:
            say(f"{database}: not measured: {error}")
            missing = True
            continue
        print(report.text(found[-1], about), end="\n\n", flush=True)
        if file:
            content = {"machine": about, "databases": [report.plain(each) for each in found]}
            file.write_text(json.dumps(content, indent=2) + "\n")
    return 1 if missing or any(findings.failures for findings in found) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = argparse.SUPPRESS
    names = ", ".join(NAMES)
    parser.add_argument("--quick", action="store_true", help="briefly, to see that it works")
    parser.add_argument("--only", metavar="NAME,...", help="measure these competitors alone")
    parser.add_argument("--list", action="store_true", help="print the competitors and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument("--keep", action="store_true", help="keep the throw-away projects")
    parser.add_argument("--directory", metavar="DIR", help="make them here: which disk is measured")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environments")
    parser.add_argument("--database", default="sqlite", metavar="NAME,...", help=f"of {names}")
    parser.add_argument(
        "--synchronous", default=default, choices=("NORMAL", "FULL"), help="of SQLite"
    )
    parser.add_argument(
        "--mysql-driver", default=default, choices=("mysqlclient", "connector"), help="for all"
    )
    for name, kind, text in (
        ("rounds", int, "times that every competitor is measured"),
        ("jobs", int, "jobs in the queue when a drain begins"),
        ("limit", float, "seconds after which a drain is cut off"),
        ("samples", int, "jobs to measure the latency with"),
        ("idle", float, "seconds over which idle CPU is measured"),
        ("poll", float, "seconds between polls of competitors that poll"),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=text)
    return parser


def _options(parsed: argparse.Namespace, directory: Path) -> Options:
    given = {name: value for name, value in vars(parsed).items() if name in Options.__annotations__}
    return Options(**{**(QUICK if parsed.quick else {}), **given, "directory": directory})


def _chosen(only: str | None, adapters: dict[str, Adapter]) -> list[Adapter]:
    if only is None:
        return list(adapters.values())
    return [adapters[name] for name in _listed(only, list(adapters), "competitor")]


def _listed(text: str, known: Sequence[str], what: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"unknown {what}: {', '.join(unknown)}; there are: {', '.join(known)}")
    return names
