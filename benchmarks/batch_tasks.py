"""The task of the jobs in batches; to be imported once Django is set up."""

from __future__ import annotations

from steady_queue_core import task


@task
def noop(number: int) -> None:
    """Do nothing."""
