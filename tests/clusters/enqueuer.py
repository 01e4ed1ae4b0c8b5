"""Enqueues numbered jobs until it is told to end, and tries each again until it is acknowledged.

What it tries when it is told to end is left as it is, acknowledged or not.

Run as ``python -m tests.clusters.enqueuer FILE FIRST``, with the first number. A line of the file
says what was acknowledged, ``ack KIND NUMBER JOB``, or that a call failed and is tried again,
``retry KIND NUMBER``.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import django
from django.db import DatabaseError, InterfaceError, close_old_connections

BULK = 10
#: Seconds between two calls, and before a call that failed is tried again.
PAUSE = 0.03
RETRY = 0.2
CIRCLE = ("plain", "unique", "limited", "bulk")


class Enqueuer:
    """One client of the queue that does not give up."""

    def __init__(self, path: Path, first: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._is_over = threading.Event()
        self._numbers = itertools.count(first)

    def end(self, *_: Any) -> None:
        self._is_over.set()

    def run(self) -> None:
        for kind in itertools.cycle(CIRCLE):
            if self._is_over.wait(PAUSE):
                return
            count = BULK if kind == "bulk" else 1
            numbers = [next(self._numbers) for _ in range(count)]
            self._insist("plain" if kind == "bulk" else kind, numbers)

    def _insist(self, kind: str, numbers: list[int]) -> None:
        while not self._is_over.is_set():
            try:
                jobs = self._enqueue(kind, numbers)
            except (DatabaseError, InterfaceError) as error:
                print(f"{kind} {numbers[0]}: {error!r}", file=sys.stderr, flush=True)
                self._write(f"retry {kind} {number}" for number in numbers)
                self._is_over.wait(RETRY)
                close_old_connections()
            else:
                self._write(
                    f"ack {kind} {number} {job}" for number, job in zip(numbers, jobs, strict=True)
                )
                return

    def _enqueue(self, kind: str, numbers: list[int]) -> list[str]:
        from steady_queue_core import call, enqueue_many

        from . import tasks

        task = getattr(tasks, kind)
        if len(numbers) == 1:
            return [task.enqueue(numbers[0]).id]
        return [result.id for result in enqueue_many([call(task, each) for each in numbers])]

    def _write(self, lines: Any) -> None:
        os.write(self._file, "".join(f"{line}\n" for line in lines).encode())
        os.fsync(self._file)


def main() -> None:
    django.setup()
    enqueuer = Enqueuer(Path(sys.argv[1]), int(sys.argv[2]))
    signal.signal(signal.SIGTERM, enqueuer.end)
    enqueuer.run()


if __name__ == "__main__":
    main()
