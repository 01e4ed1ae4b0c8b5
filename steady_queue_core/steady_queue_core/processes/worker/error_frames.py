"""The frames of the error that has ended an attempt, which hold all that its task had in hand."""

from __future__ import annotations

import traceback
from collections.abc import Iterator


def forget_frames(error: BaseException | None) -> None:
    """Let go of the variables in the frames of ``error`` and of those that led to it: some of them
    may know the error, and only a garbage collection would end that."""
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
