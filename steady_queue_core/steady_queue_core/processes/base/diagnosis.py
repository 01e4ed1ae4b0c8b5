"""What a running process tells on request: its log files anew, and what its threads are doing."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import FrameType, MappingProxyType
from typing import Any

from ...logging import about, get_logger

logger = get_logger("steady_queue.process")

#: Most frames of a stack that are logged, from the innermost.
MOST_FRAMES = 40


def reopen_log_files() -> None:
    """Close and open again each file that a handler of a logger writes to, so that a log that was
    moved away is no longer written to. A handler that cannot is left as it is."""
    for handler in _handlers():
        if isinstance(handler, logging.FileHandler) and handler.stream:
            with suppress(Exception):
                _reopen(handler)


def _reopen(handler: logging.FileHandler) -> None:
    handler.mode = handler.mode.replace("w", "a")  # What is there must stay.
    stream = handler._open()
    handler.acquire()
    try:
        handler.stream, stream = stream, handler.stream
        stream.close()
    finally:
        handler.release()


def _handlers() -> Iterator[logging.Handler]:
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    for each in loggers:
        if isinstance(each, logging.Logger):
            yield from each.handlers


def log_stacks(
    runs: Mapping[int, str] = MappingProxyType({}),
    coroutines: Iterable[tuple[str, asyncio.Task[None]]] = (),
) -> None:
    """Log the stack of each thread, and of each of ``coroutines``, which are named.

    ``runs``: what threads run, by their id.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        name = names.get(ident, str(ident))
        doing = f"runs {runs[ident]}" if ident in runs else "is at"
        _log(f"Thread {name} {doing}", _frames(frame))
    for name, task in coroutines:
        with suppress(Exception):  # It may end while we look.
            _log(f"A coroutine runs {name}", _awaited(task.get_coro()))


def _log(what: str, frames: list[str]) -> None:
    logger.info(
        "%s: %s",
        what,
        " < ".join(frames),
        extra=about("process.stack", stack=frames),
    )


def _frames(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < MOST_FRAMES:
        found.append(_place(frame))
        frame = frame.f_back
    return found


def _awaited(coroutine: Any) -> list[str]:
    """Return the places where a suspended coroutine and those that it awaits are, from the
    innermost."""
    found: list[str] = []
    while coroutine is not None and len(found) < MOST_FRAMES:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            found.append(_place(frame))
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return found[::-1]


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}"
