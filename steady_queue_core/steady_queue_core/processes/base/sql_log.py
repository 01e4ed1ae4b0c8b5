"""Keeping the statements of the queue's own processes out of Django's log of SQL."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Silence(threading.local, logging.Filter):
    """Drops what the threads log that are silent at the moment."""

    depth = 0

    def __init__(self) -> None:
        logging.Filter.__init__(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.depth


_silence = _Silence()


@contextmanager
def silenced() -> Iterator[None]:
    """Have the calling thread's statements not logged meanwhile."""
    # Where it is already, it is not added again.
    logging.getLogger("django.db.backends").addFilter(_silence)
    _silence.depth += 1
    try:
        yield
    finally:
        _silence.depth -= 1
