"""A task that returns the version of the code that its worker has imported: from ``deployed.py`` in
the folder of the project."""

from __future__ import annotations

from deployed import VERSION  # type: ignore[import-not-found]  # Made by the test.

from steady_queue_core import task


@task
def version() -> object:
    return VERSION
