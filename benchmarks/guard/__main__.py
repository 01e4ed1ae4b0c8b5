"""The command line: compare what a job costs with the stored figures, or store them anew."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import machine
from benchmarks.guard import store
from benchmarks.guard.comparison import FIGURES, compare, passes, text
from benchmarks.guard.costs import take
from benchmarks.options import Options
from benchmarks.run import say
from benchmarks.sandbox import Failure, Figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the guard; 0 when no job has become dearer, or when the figures are stored."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the figures of now")
    parsed = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="steady-queue-guard-"))
    # Nothing here waits for a disk.
    options = Options(directory=directory, python=sys.executable, jobs=16_000, durable=False)
    begin = time.monotonic()
    try:
        machine.keep_to_cores(options.processes)
        return _write(options) if parsed.write else _check(options)
    except (Failure, RuntimeError) as error:
        say(f"not measured: {error}")
        return 1
    finally:
        say(f"{time.monotonic() - begin:.0f} s")
        shutil.rmtree(directory, ignore_errors=True)


def _write(options: Options) -> int:
    store.write({name: take(replace(options, database=name), lambda _: False) for name in FIGURES})
    return 0


def _check(options: Options) -> int:
    stored = store.read()
    unchanged = [_unchanged(options, name, stored.get(name, {})) for name in FIGURES]
    return 0 if all(unchanged) else 1


def _unchanged(options: Options, database: str, stored: Mapping[str, float]) -> bool:
    """Say whether nothing costs more on one database, and print its table."""

    def enough(figures: Figures) -> bool:
        return passes(compare(database, stored, figures))

    findings = compare(database, stored, take(replace(options, database=database), enough))
    print(text(database, findings), end="\n\n", flush=True)
    return passes(findings)


if __name__ == "__main__":
    sys.exit(main())
