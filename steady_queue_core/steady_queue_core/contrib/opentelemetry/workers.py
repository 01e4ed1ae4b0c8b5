"""The workers in this process, and their queues."""

from __future__ import annotations

from typing import Any

#: The queues of each worker, by its name.
_queues: dict[str, str] = {}


def note_start(process_name: str, metadata: Any) -> None:
    """Take note of a worker that has started here, or whose task process this is."""
    queues = metadata.get("queues")
    if queues:
        _queues[process_name] = ",".join(map(str, queues))


def note_end(process_name: str) -> None:
    """Forget a worker."""
    _queues.pop(process_name, None)


def queues_of(process_name: str) -> str | None:
    """Return the queue list of a worker, as one text."""
    return _queues.get(process_name)
