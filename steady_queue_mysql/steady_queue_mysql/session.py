"""What a queue process sets on its connections."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from .server import server_of

#: Seconds to wait for a row lock, in a thread that tries again by itself. The default is 50.
LOCK_WAIT = 3
#: Seconds without a statement after which the server ends such a session: its process may be cut
#: off in the middle of a transaction, and whoever takes over needs the locks.
IDLE = 8


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Know the server, and wait no longer for locks than the thread can afford; say so."""
    server = server_of(connection)
    if not impatient:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT}, SESSION wait_timeout = {IDLE}"
        )
    return [
        f"the server is {server.display_name}",
        f"the queue's own connections wait up to {LOCK_WAIT} s for row locks",
    ]
