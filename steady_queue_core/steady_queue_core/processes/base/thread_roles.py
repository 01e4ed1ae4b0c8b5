"""What the threads of a process are for: the queue's own, and those of executors, whoever has
started these."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from concurrent.futures.thread import _worker, _WorkItem
from types import CodeType, FrameType
from typing import Any

from asgiref.sync import SyncToAsync

#: The prefix of the names of a worker's own threads.
THREAD_PREFIX = "steady-queue-"

_RUN = _WorkItem.run.__code__
#: What each thread of an executor runs.
_SERVE = _worker.__code__


def is_own(thread: threading.Thread) -> bool:
    """Whether a thread is the queue's own."""
    return thread is threading.main_thread() or thread.name.startswith(THREAD_PREFIX)


def work_of_thread() -> Future[Any] | None:
    """Return the future of what the calling thread runs for an executor, if it does. Its callbacks
    are called in this thread."""
    frame = _frame_of(_RUN)
    work: Future[Any] | None = None if frame is None else frame.f_locals["self"].future
    return work


def serves_all_coroutines() -> bool:
    """Whether the calling thread is the one that ``sync_to_async`` uses for all queries."""
    executor: Any = SyncToAsync.single_thread_executor
    # An executor lists a thread only after it has begun to serve.
    frame = _frame_of(_SERVE)
    return frame is not None and frame.f_locals["work_queue"] is executor._work_queue


def _frame_of(code: CodeType) -> FrameType | None:
    """Return the innermost frame of the calling thread that runs ``code``."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame
