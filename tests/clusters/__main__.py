"""Runs faults on clusters and prints what they cost: ``python -m tests.clusters --help``."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.servers.programs import NotFound

from .engines import ENGINES
from .faults import FAULTS
from .namespaces import NotPermitted
from .run import run_engine
from .table import Row, render


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Ctrl-C and TERM end the clusters, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="steady-queue-clusters-"))
    # The servers run under accounts of their own.
    folder.chmod(0o755)
    rows: list[Row] = []
    try:
        for row in _rows(options, folder):
            print(" | ".join(filter(None, row.cells())), file=sys.stderr, flush=True)
            rows.append(row)
    finally:
        print(render(rows))
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
        if options.keep:
            print(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(row.is_good for row in rows) else 1


def _rows(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    for name in options.engine:
        faults = [
            each for each in FAULTS
            if each.name in options.fault and (name in each.engines or _is_for(name, each.engines))
        ]  # fmt: skip
        if not faults:
            continue
        try:
            cluster = ENGINES[name](folder / name)
            yield from run_engine(name, cluster, faults, options.seconds, folder / name)
        except (NotFound, NotPermitted) as error:
            yield from (Row(name, each.name, problem=f"not run: {error}") for each in faults)


def _is_for(engine: str, engines: Sequence[str]) -> bool:
    # One of several primaries is there for the faults that name it.
    return not engines and engine != "several_primaries"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.clusters", description=__doc__)
    names = [each.name for each in FAULTS]
    parser.add_argument("--engine", type=Listed(list(ENGINES)), default=list(ENGINES))
    parser.add_argument("--fault", type=Listed(names), default=names)
    parser.add_argument(
        "--seconds", type=float, default=15.0, help="how long a fault lasts once it is noticed"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file as well")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    return parser


class Listed:
    """Names separated by commas."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, text: str) -> list[str]:
        names = [each.strip() for each in text.split(",")]
        if unknown := [each for each in names if each not in self._known]:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)} is none of {', '.join(self._known)}"
            )
        return names


if __name__ == "__main__":
    sys.exit(main())
