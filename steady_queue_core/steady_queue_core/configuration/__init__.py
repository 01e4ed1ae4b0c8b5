"""The configuration of the processes that ``manage.py steady_queue`` starts.

``settings.STEADY_QUEUE`` is a ``Configuration.Options(...)``, or a dict with the same keys, which
needs no import in the settings file::

    STEADY_QUEUE = {
        "workers": [{"queues": ["real_time", "mail*"], "threads": 5, "processes": 2}],
        "dispatchers": [{"polling_interval": 1, "batch_size": 500}],
    }

Durations are given as a ``timedelta`` or a number of seconds, and are read as a ``timedelta``. All
values are checked at once: a ``ConfigurationError`` lists every problem with its place.
"""

from __future__ import annotations

from typing import TypeAlias

from .backend import Backend as _Backend
from .errors import ConfigurationError
from .loading import from_settings, load
from .options import Options as _Options
from .options import ResolvedOptions
from .processes import Dispatcher as _Dispatcher
from .processes import Scheduler as _Scheduler
from .processes import Worker as _Worker

__all__ = ["Configuration", "ConfigurationError", "ResolvedOptions", "load"]


class Configuration:
    """Namespace of the configuration's classes; not meant to be instantiated."""

    Worker: TypeAlias = _Worker
    Dispatcher: TypeAlias = _Dispatcher
    Scheduler: TypeAlias = _Scheduler
    Backend: TypeAlias = _Backend
    Options: TypeAlias = _Options

    load = staticmethod(from_settings)
