"""Jobs in databases that no backend names, or does not any more."""

from __future__ import annotations

from datetime import timedelta

from django.db import connections

from ..dialects import portable
from .execution import WAITING
from .process import Process

#: How long ago a process, of another project or of the database that this one is a replica of, may
#: have told that it lives.
_LATELY = timedelta(minutes=10)


def has_jobs_left_behind(using: str) -> bool:
    """Whether jobs wait in a database in which no process of the queue has been alive lately.

    Errors of a database that cannot be read are passed on.
    """
    connection = connections[using]
    tables = {Process._meta.db_table, *(state._meta.db_table for state in WAITING)}
    if not tables <= set(connection.introspection.table_names()):
        return False
    present = portable.current_time(connection, portable.now(connection))
    lately = portable.storable(present - _LATELY)
    if Process.objects.using(using).filter(last_heartbeat_at__gte=lately).exists():
        return False
    return any(state._default_manager.using(using).exists() for state in WAITING)
