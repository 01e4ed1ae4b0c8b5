"""Operations on many jobs, step by step: how far they have come, and Ctrl-C between two steps."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple

from .context import Context

#: Seconds between two lines, and before the first.
INTERVAL = 2.0


class Outcome(NamedTuple):
    """What has become of an operation."""

    #: Jobs that were changed.
    changed: int
    was_interrupted: bool


def take_steps(
    context: Context, words: str, total: int | None, steps: Iterable[Callable[[], int]]
) -> Outcome:
    """Take one step after the other, until Ctrl-C; each returns how many jobs it has changed.
    ``total`` is the number of all, if it is known."""
    with Interruption() as interruption, Progress(context, words, total) as progress:
        for step in steps:
            if interruption.requested:
                return Outcome(progress.done, was_interrupted=True)
            progress.advance(step())
        return Outcome(progress.done, was_interrupted=False)


class Interruption:
    """While it is entered, the first Ctrl-C only sets ``requested``; the second one interrupts at
    once. Elsewhere than in the main thread, which alone receives signals, it does nothing."""

    def __init__(self) -> None:
        self.requested = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


class Progress:
    """Tells of progress while it is entered: with a bar if ``rich`` is installed and somebody looks
    at a terminal, otherwise by a line every few seconds."""

    def __init__(self, context: Context, words: str, total: int | None) -> None:
        self._context, self._words, self._total = context, words, total
        self._told_at = time.monotonic()
        self.done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        self._bar = _bar() if self._context.stderr.isatty() else None
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._words, total=self._total)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int) -> None:
        """Tell, if it is time, that so many more jobs were changed."""
        self.done += count
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)
        elif time.monotonic() >= self._told_at + INTERVAL:
            self._told_at = time.monotonic()
            total = "" if self._total is None else f" of {self._total:,}"
            self._context.note(f"{self._words}: {self.done:,}{total}")


def _bar() -> Any:
    """Return a progress bar of ``rich``, or ``None`` if that is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        return None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True))
