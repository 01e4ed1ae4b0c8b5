"""Which queues of a database are fair: asked before each move of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.signals import setting_changed

from .queues import FairQueues

#: Returns the fair queues of a database; ``None``: nobody declares any.
Source = Callable[[str], FairQueues | None]

#: The settings that decide about them.
SETTINGS = ("TASKS", "DATABASES", "DATABASE_ROUTERS", "STEADY_QUEUE")


def _nobody(using: str) -> FairQueues | None:
    return None


_source: Source = _nobody
_known: dict[str, FairQueues | None] = {}
#: What is known of a database for which nobody was asked.
_UNKNOWN = FairQueues({})


def ask(source: Source) -> None:
    """Let ``source`` say from now on which queues are fair. The app asks the backends in ``TASKS``,
    which this package cannot know."""
    global _source
    _source = source
    forget()


def fair_queues_in(using: str) -> FairQueues | None:
    """Return the fair queues of a database; ``None``: nobody declares any."""
    # Asked for each job that is enqueued.
    found = _known.get(using, _UNKNOWN)
    if found is _UNKNOWN:
        found = _known[using] = _source(using)
    return found


def forget() -> None:
    """Forget what was said: with other settings."""
    _known.clear()


def _forget_with_settings(*, setting: str, **kwargs: Any) -> None:
    if setting in SETTINGS:
        forget()


setting_changed.connect(_forget_with_settings, dispatch_uid="steady_queue_forget_fair_queues")
