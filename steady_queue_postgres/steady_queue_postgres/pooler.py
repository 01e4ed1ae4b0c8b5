"""Detects a connection pooler between the project and the server.

Behind a pooler that assigns server sessions by transaction, no session belongs to one client:
settings and prepared statements leak to other clients, and notifications do not arrive.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def is_declared(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the project's settings say so, as Django's documentation recommends."""
    return bool(connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"))


def is_pooled(connection: BaseDatabaseWrapper) -> bool:
    """Return whether there is a pooler. Asks the server once for each connection."""
    if is_declared(connection):
        return True
    connection.ensure_connection()
    wrapper: Any = connection
    session = wrapper.connection
    if getattr(wrapper, "steady_queue_session", None) is not session:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            server = cursor.fetchone()[0]
        wrapper.steady_queue_session = session
        # A pooler invents the process ids that it gives to its clients.
        wrapper.steady_queue_is_pooled = server != session.info.backend_pid
    return bool(wrapper.steady_queue_is_pooled)
