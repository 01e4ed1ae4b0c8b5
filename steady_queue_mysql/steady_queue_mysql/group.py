"""The replication group of a MySQL server, and the checks of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.core.checks import CheckMessage, Error, Warning
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import rows_of

from .errors import DENIED, error_number

#: Also lists the server itself while it is in no group, if it has the plugin: as OFFLINE.
ASK = """
SELECT member_host, member_port, member_state, member_role, member_id IN (@@server_uuid, '')
FROM performance_schema.replication_group_members ORDER BY 1, 2"""


class Member(NamedTuple):
    """A server of a group, as another one of it, or itself, sees it."""

    host: str
    port: int | None
    state: str
    role: str
    is_own: bool

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def check_group(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    """Yield what is wrong with the group; nothing if there is none, or its members may not be
    read."""
    return problems(connection.alias, members(connection))


def members(connection: BaseDatabaseWrapper) -> list[Member]:
    try:
        found = rows_of(connection, ASK)
    except DatabaseError as error:
        if error_number(error) != DENIED:
            raise
        return []
    return [
        Member(str(host), port, str(state), str(role), bool(is_own))
        for host, port, state, role, is_own in found
    ]


def problems(alias: str, group: Sequence[Member]) -> Iterator[CheckMessage]:
    """Yield the checks' messages about a ``group``, as the server of ``alias`` sees it."""
    own = next((member for member in group if member.is_own), None)
    if own is None:
        return
    if own.state != "ONLINE":
        yield Error(
            f"The server of database {alias!r} takes no part in its replication group: it is "
            f"{own.state}.",
            hint="Connect to the primary. On that server: START GROUP_REPLICATION, after its "
            "error log has told why it left.",
            id="steady_queue.E314",
        )
        return
    lost = [member for member in group if member.state == "UNREACHABLE"]
    if len(lost) * 2 >= len(group):
        yield Error(
            f"The server of database {alias!r} reaches {len(group) - len(lost)} of the "
            f"{len(group)} members of its replication group, itself included, which is no "
            "majority: writes wait.",
            hint=f"Mend the connection to {_named(lost)}, or connect to a member of the majority.",
            id="steady_queue.E315",
        )
    primaries = [
        member for member in group if member.role == "PRIMARY" and member.state == "ONLINE"
    ]
    if own.role == "SECONDARY":
        yield Error(
            f"Database {alias!r} is on a secondary member of its replication group, which is "
            "read-only.",
            hint=f"Name the primary in DATABASES, now {_named(primaries)}, or a proxy that leads "
            "there.",
            id="steady_queue.E316",
        )
    elif len(primaries) > 1:
        yield Warning(
            f"The replication group of database {alias!r} has {len(primaries)} primaries "
            f"({_named(primaries)}): transactions on two of them conflict when they commit, and "
            "are done again.",
            hint="SELECT group_replication_switch_to_single_primary_mode(), or let all processes "
            "of the project write to the same member.",
            id="steady_queue.W310",
        )


def _named(group: Sequence[Member]) -> str:
    return ", ".join(member.address for member in group) or "unknown"
