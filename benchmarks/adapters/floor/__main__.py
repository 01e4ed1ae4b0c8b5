"""One worker process of the floor, in the throw-away project: POLL."""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.adapters.floor.loop import open_queue, work

if __name__ == "__main__":
    databases = import_module("settings").DATABASES
    work(open_queue(databases["default"]), float(sys.argv[1]))
