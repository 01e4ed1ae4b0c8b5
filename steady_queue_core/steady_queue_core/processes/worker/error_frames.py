"""The frames of the error that has ended an attempt, which hold all that its task had in hand."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from threading import Lock

#: Most errors that keep their frames until somebody is told of them: each may hold megabytes, and
#: results wait by the thousand for a slow receiver.
MOST_KEPT = 20

_lock = Lock()
#: The errors that keep their frames, the oldest first, by identity: they may compare as they like.
_kept: dict[int, BaseException] = {}


def keep_frames(error: BaseException) -> None:
    """Keep the frames of ``error`` until they are forgotten; forget those of the oldest instead if
    that would be too many. Thread safe."""
    oldest = None
    with _lock:
        _kept[id(error)] = error
        if len(_kept) > MOST_KEPT:
            oldest = _kept.pop(next(iter(_kept)))
    forget_frames(oldest)


def forget_frames(error: BaseException | None) -> None:
    """Let go of the variables in the frames of ``error`` and of those that led to it: some of them
    may know the error, and only a garbage collection would end that."""
    with _lock:
        _kept.pop(id(error), None)
    for each in _chain(error):
        if each.__traceback__ is not None:
            traceback.clear_frames(each.__traceback__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
