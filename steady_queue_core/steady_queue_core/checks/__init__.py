"""System checks. Their ids are documented and stable; importing this registers them.

Those of a database are in its dialect.
"""

from __future__ import annotations

from .databases import (
    check_databases,
    check_dialects,
    check_jobs_left_behind,
    check_recorded_migrations,
    check_routers,
    check_start,
)
from .durations import check_durations
from .known_backends import START, TAG
from .schedules import check_recurring_tasks
from .settings import (
    check_configuration,
    check_framework,
    check_mode,
    check_pools,
    check_signatures,
)
from .sharding import check_limits_of_shards, check_shard_keys
from .tasks import (
    check_callbacks,
    check_fair_keys,
    check_limits,
    check_task_modules,
    check_transactional_tasks,
)

__all__ = [
    "START",
    "TAG",
    "check_callbacks",
    "check_configuration",
    "check_databases",
    "check_dialects",
    "check_durations",
    "check_fair_keys",
    "check_framework",
    "check_jobs_left_behind",
    "check_limits",
    "check_limits_of_shards",
    "check_mode",
    "check_pools",
    "check_recorded_migrations",
    "check_recurring_tasks",
    "check_routers",
    "check_shard_keys",
    "check_signatures",
    "check_start",
    "check_task_modules",
    "check_transactional_tasks",
]
