"""How far an operation on many jobs has come, on the standard error."""

from __future__ import annotations

import time
from typing import Any

from .context import Context

#: Seconds between two lines, and before the first.
INTERVAL = 2.0


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
