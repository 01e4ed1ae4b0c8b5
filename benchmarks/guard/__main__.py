"""The command line: compare what a job costs with the stored figures, or store them anew."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import machine
from benchmarks.guard import store
from benchmarks.guard.comparison import COUNTS, FIGURES, Figure, compare, passes, text
from benchmarks.guard.costs import take, take_counts
from benchmarks.options import Options
from benchmarks.run import say
from benchmarks.sandbox import Failure, Figures

Take = Callable[[Options, Callable[[Figures], bool]], Figures]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the guard; 0 when no job has become dearer, or when the figures are stored."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="store the figures of now")
    what.add_argument(
        "--counts", action="store_true", help="leave out CPU time, which varies with the machine"
    )
    parsed = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="steady-queue-guard-"))
    # Nothing here waits for a disk.
    options = Options(directory=directory, python=sys.executable, jobs=16_000, durable=False)
    begin = time.monotonic()
    try:
        machine.keep_to_cores(options.processes)
        if parsed.write:
            return _write(options)
        return _check(options, *((COUNTS, take_counts) if parsed.counts else (FIGURES, take)))
    except (Failure, RuntimeError) as error:
        say(f"not measured: {error}")
        return 1
    finally:
        say(f"{time.monotonic() - begin:.0f} s")
        shutil.rmtree(directory, ignore_errors=True)


def _write(options: Options) -> int:
    store.write({name: take(replace(options, database=name), lambda _: False) for name in FIGURES})
    return 0


def _check(options: Options, wanted: Mapping[str, Sequence[Figure]], taken: Take) -> int:
    stored = store.read()
    unchanged = [
        _unchanged(replace(options, database=name), figures, stored.get(name, {}), taken)
        for name, figures in wanted.items()
    ]
    return 0 if all(unchanged) else 1


def _unchanged(
    options: Options, figures: Sequence[Figure], stored: Mapping[str, float], taken: Take
) -> bool:
    """Say whether nothing costs more on one database, and print its table."""
    compared = partial(compare, figures, stored)
    findings = compared(taken(options, lambda now: passes(compared(now))))
    print(text(options.database, findings), end="\n\n", flush=True)
    return passes(findings)


if __name__ == "__main__":
    sys.exit(main())
