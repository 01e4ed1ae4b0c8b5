"""Whether a connection pooler stands between us and the server.

Behind one that hands out servers transaction by transaction, a session is nobody's: what is set in
it or prepared in it meets others, and what it listens to is not heard.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def is_declared(connection: BaseDatabaseWrapper) -> bool:
    """Whether the project says so, as Django's documentation asks it to."""
    return bool(connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"))


def is_pooled(connection: BaseDatabaseWrapper) -> bool:
    """Whether there is one. Asks the server once for each connection."""
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
        # A pooler makes up the process ids that it gives to its clients.
        wrapper.steady_queue_is_pooled = server != session.info.backend_pid
    return bool(wrapper.steady_queue_is_pooled)
