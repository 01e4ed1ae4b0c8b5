"""The command line: count, print a table, and compare with the figures of another tree."""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.adapters import competitors
from benchmarks.columns import aligned
from benchmarks.databases.servers import open_server
from benchmarks.options import Options
from benchmarks.sandbox import Failure, Figures, Sandbox

DATABASES = ("sqlite", "postgres")


def main(arguments: Sequence[str] | None = None) -> int:
    """Count on each database; 1 if that fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument("--database", action="append", choices=DATABASES, help="only this one")
    parser.add_argument("--write", type=Path, metavar="FILE", help="store the figures")
    parser.add_argument("--before", type=Path, metavar="FILE", help="compare with stored ones")
    parsed = parser.parse_args(arguments)
    before = {} if parsed.before is None else json.loads(parsed.before.read_text())
    found: dict[str, Figures] = {}
    try:
        for database in parsed.database or DATABASES:
            found[database] = counted(database)
            print(f"{database}\n{_table(found[database], before.get(database, {}))}\n", flush=True)
    except (Failure, RuntimeError) as error:
        print(f"not counted: {error}", file=sys.stderr)
        return 1
    if parsed.write is not None:
        parsed.write.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def counted(database: str) -> Figures:
    """Return the figures of one database."""
    directory = Path(tempfile.mkdtemp(prefix="steady-queue-calls-"))
    options = Options(directory=directory, python=sys.executable, database=database, durable=False)
    try:
        with open_server(options, sqlite3.sqlite_version) as server:
            sandbox = Sandbox(competitors()["steady_queue-quiet"], options, server)
            try:
                sandbox.reset()
                return sandbox.client("calls")
            finally:
                sandbox.database.remove()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _table(now: Figures, before: Mapping[str, float]) -> str:
    rows = [["", "before", "now", "change"]]
    for name, value in now.items():
        was = before.get(name)
        change = "" if not was else f"{100 * (value / was - 1):+.0f} %"
        shown = ["" if was is None else f"{was:.1f}", f"{value:.1f}", change]
        rows.append([name.replace("_", " "), *shown])
    return aligned(rows)


if __name__ == "__main__":
    sys.exit(main())
