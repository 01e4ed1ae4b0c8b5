"""Setting up the connections of queue processes."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from .server import server_of

#: Seconds that control threads wait for a row lock. The server's default is 50.
LOCK_WAIT = 1
#: What carries every character.
CHARSET = "utf8mb4"
#: Seconds without a statement after which the server ends such a session: its process may be cut
#: off in the middle of a transaction, and its successor needs the locks.
IDLE = 8


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Limit how long control threads wait for locks; return what was changed."""
    server = server_of(connection)
    if not impatient:
        return []
    _carry_every_character(connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT}, SESSION wait_timeout = {IDLE}"
        )
    return [
        f"the server is {server.display_name}",
        f"the queue's own connections wait up to {LOCK_WAIT} s for row locks",
    ]


def _carry_every_character(connection: BaseDatabaseWrapper) -> None:
    """Let the queue's own session carry all texts, such as keys, whatever the project's do: another
    character set would change some, and the server refuse others."""
    wrapper: Any = connection
    if wrapper.settings_dict["OPTIONS"].get("charset", CHARSET) == CHARSET:
        return
    for name in ("set_character_set", "set_charset_collation"):
        if setter := getattr(wrapper.connection, name, None):
            setter(CHARSET)
            return


def share(connection: BaseDatabaseWrapper) -> None:
    """Correct what Django believes about the server: MariaDB, or MySQL."""
    server_of(connection)
