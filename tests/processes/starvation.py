"""How long the machine itself kept everybody waiting while a test measured something."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Seconds that the control sleeps between two looks.
NAP = 0.01


class Starvation:
    """The worst delays, in seconds, of a thread that does next to nothing."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "starvation", os.O_WRONLY | os.O_CREAT, 0o600)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        #: By how much it overslept.
        self.overslept = 0.0
        #: How long the disk took to keep one byte.
        self.disk = 0.0

    @property
    def worst(self) -> float:
        return max(self.overslept, self.disk)

    def _watch(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            time.sleep(NAP)
            woke = time.monotonic()
            os.pwrite(self._file, b"\0", 0)
            os.fdatasync(self._file)
            self.overslept = max(self.overslept, woke - began - NAP)
            self.disk = max(self.disk, time.monotonic() - woke)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        os.close(self._file)


@contextmanager
def watch_starvation(folder: Path) -> Iterator[Starvation]:
    """Watch the machine meanwhile; ``folder`` is on the disk to be watched."""
    starvation = Starvation(folder)
    starvation.start()
    try:
        yield starvation
    finally:
        starvation.stop()
