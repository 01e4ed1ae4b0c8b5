"""What a test asks the app for: an error at places, and whether it was raised there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Fault:
    """The files of a project's folder that ``app.switch`` reads and writes."""

    def __init__(self, folder: Path) -> None:
        self._asked, self._met = folder / "fault", folder / "met"
        self._met.mkdir()
        self._set("")

    @contextmanager
    def at(self, places: str, error: str) -> Iterator[None]:
        """Have an error raised at the places whose names fit a pattern."""
        for each in self._met.iterdir():
            each.unlink()
        self._set(f"{places}\n{error}")
        try:
            yield
        finally:
            self._set("")

    def met(self) -> set[str]:
        """Return the places where it was raised."""
        return {each.name for each in self._met.iterdir()}

    def _set(self, text: str) -> None:
        written = self._asked.with_suffix(".new")
        written.write_text(text)
        written.rename(self._asked)
