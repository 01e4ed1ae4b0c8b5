"""The batch to which the calls are added that the present context enqueues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from ..compat import InvalidTask
from ..features.batches.link import NAME, Link
from ..features.calls import NOTHING, Facts


class OpenBatch(NamedTuple):
    """A batch that takes calls."""

    batch_id: int
    #: The alias of its database.
    using: str


_current: ContextVar[OpenBatch | None] = ContextVar("steady_queue_batch", default=None)


def current() -> OpenBatch | None:
    """Return the batch that is open in this context."""
    return _current.get()


def enter(batch: OpenBatch) -> Token[OpenBatch | None]:
    """Open a batch until ``leave()`` is called with what is returned."""
    return _current.set(batch)


def leave(token: Token[OpenBatch | None]) -> None:
    """Open the batch again that was open before."""
    _current.reset(token)


@contextmanager
def outside() -> Iterator[None]:
    """Have calls belong to no batch."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def at_call(call: Any, backend: Any) -> Facts:
    """Add a call to the batch that is open. Raises ``InvalidTask`` if that is in another
    database."""
    batch = _current.get()
    if batch is None or not backend.stores_jobs:
        return NOTHING
    if backend.database != batch.using:
        raise InvalidTask(
            f"{call.task.module_path} stores its jobs in the database {backend.database!r}, and "
            f"cannot be added to batch {batch.batch_id}, which is in {batch.using!r}. Enqueue it "
            "outside of the batch, or use a backend on the same database."
        )
    call.batch_id = batch.batch_id
    return {NAME: Link(batch.batch_id).stored}
