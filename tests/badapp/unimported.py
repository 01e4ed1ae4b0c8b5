"""Leaves a file behind when it is imported, which only a row of the database asks for."""

from __future__ import annotations

from pathlib import Path

from steady_queue_core import task

Path("imported").touch()


@task
def bomb() -> None:
    """Never run."""
