"""Settings that are attributes of the package itself: ``steady_queue_core.shutdown_timeout = ...``.

They are the defaults of the options that ``STEADY_QUEUE`` and ``TASKS`` leave out. They are looked
up at each use, so a settings file may assign them after it has built its options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

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


def module_setting(name: str) -> Any:
    """Return the value of ``steady_queue_core.<name>``, or its default if it was deleted."""
    # The package is always loaded here. An import of it would be circular.
    return getattr(sys.modules[PACKAGE], name, DEFAULTS[name])


def module_reader(names: Iterable[str]) -> Reader:
    """Return a reader of these settings, which reports them as ``steady_queue_core.<name>``."""
    return Reader(
        PACKAGE, lambda name: f"{PACKAGE}.{name}", {name: module_setting(name) for name in names}
    )
