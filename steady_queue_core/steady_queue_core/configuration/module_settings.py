"""Settings that stand on the package itself: ``steady_queue_core.shutdown_timeout = ...``.

They are defaults for what ``STEADY_QUEUE`` and ``TASKS`` leave out, and are looked up each time,
so that a settings file may assign them after it has built its options.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from datetime import timedelta

from .reader import Reader

PACKAGE = "steady_queue_core"

DEFAULTS: dict[str, object] = {
    "process_heartbeat_interval": timedelta(seconds=60),
    "process_alive_threshold": timedelta(minutes=5),
    "shutdown_timeout": timedelta(seconds=5),
    "supervisor_pidfile": None,
    "silence_polling": True,
    "database": None,
    "preserve_finished_jobs": True,
    "clear_finished_jobs_after": timedelta(days=1),
    "default_concurrency_control_period": timedelta(minutes=3),
}


def module_setting(name: str) -> object:
    """The value of ``steady_queue_core.<name>``, or the default where the package has none."""
    return getattr(importlib.import_module(PACKAGE), name, DEFAULTS[name])


def module_reader(names: Iterable[str]) -> Reader:
    """A reader of these settings, whose problems name them as ``steady_queue_core.<name>``."""
    return Reader(
        PACKAGE, lambda name: f"{PACKAGE}.{name}", {name: module_setting(name) for name in names}
    )
