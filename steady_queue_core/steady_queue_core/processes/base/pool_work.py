"""The pieces of work that threads of executors run, whoever has started these."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from concurrent.futures.thread import _WorkItem
from types import FrameType
from typing import Any

from asgiref.sync import SyncToAsync

_RUN = _WorkItem.run.__code__


def work_of_thread() -> Future[Any] | None:
    """Return the future of what the calling thread runs for an executor, if it does. Its callbacks
    are called in this thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _RUN:
        frame = frame.f_back
    work: Future[Any] | None = None if frame is None else frame.f_locals["self"].future
    return work


def serves_all_coroutines() -> bool:
    """Whether the calling thread is the one that ``sync_to_async`` uses for all queries."""
    executor: Any = SyncToAsync.single_thread_executor
    return threading.current_thread() in executor._threads
