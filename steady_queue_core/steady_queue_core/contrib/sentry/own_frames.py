"""Leaving out the variables of the queue's own frames, which hold arguments of tasks.

The SDK filters variables by their names. In the frame of a task, or of who enqueues it, these are
the project's own; in the queue's frames they are ``args``, ``calls`` and the like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentry_sdk.scope import global_event_processors

#: How the packages of the queue and of its dialects begin, and modules that pass its calls on.
_MODULES = ("steady_queue_", "django.utils.asyncio", "asgiref.sync")


def leave_out_variables() -> None:
    """Report no more variables of these frames in this process."""
    if _without_variables not in global_event_processors:
        global_event_processors.append(_without_variables)


def _without_variables(event: Any, hint: Any) -> Any:
    for frame in _frames(event):
        if str(frame.get("module")).startswith(_MODULES):
            frame.pop("vars", None)
    return event


def _frames(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in ("exception", "threads"):
        for value in (event.get(kind) or {}).get("values") or ():
            yield from (value.get("stacktrace") or {}).get("frames") or ()
    yield from (event.get("stacktrace") or {}).get("frames") or ()
