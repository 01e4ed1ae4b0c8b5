"""``python -m tests.faults``: runs the fault sweep, and prints its table."""

from __future__ import annotations

import argparse
import sys
import time

from ..servers.kinds import KINDS
from .sweep import DATABASES, EXECUTORS, sweeps


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--databases", default=",".join(DATABASES), help="a,b: these alone")
    parser.add_argument("--executors", default=",".join(EXECUTORS), help="a,b: these alone")
    options = parser.parse_args()
    wrong, cells, began = [], 0, time.monotonic()
    for database in options.databases.split(","):
        if database in KINDS and KINDS[database].given() is None:
            print(f"{database:9} there is no server")
            continue
        for executor in options.executors.split(","):
            for report in sweeps(database, executor):
                print(report, *report.wrong, sep="\n    ", flush=True)
                cells, wrong = cells + report.cells, wrong + report.wrong
    print(f"{cells} cells in {time.monotonic() - began:.0f} s, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
