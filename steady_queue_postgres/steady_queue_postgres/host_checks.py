"""System checks of where a connection leads to: to a primary only, and never to a dead end."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.checks import CheckMessage, Warning
from django.db.backends.base.base import BaseDatabaseWrapper

#: Values of ``target_session_attrs`` under which a standby is passed over.
WRITERS = ("read-write", "primary")
#: What ends a wait for a host that is gone: for a connection, for the acknowledgement of what was
#: sent, and for an answer.
TIME_OUTS = ("connect_timeout", "tcp_user_timeout", "keepalives_idle")
ADVICE = (
    "{'connect_timeout': 3, 'tcp_user_timeout': 5000, 'keepalives_idle': 5, "
    "'keepalives_interval': 2, 'keepalives_count': 3}"
)


def run(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    """Report other hosts without time-outs, and hosts among which a standby may be chosen."""
    parameters = _parameters(connection)
    hosts = hosts_of(parameters)
    name = connection.alias
    missing = missing_time_outs(parameters)
    if missing and not all(map(is_local, hosts)):
        yield Warning(
            f"Database {name!r} is on another host ({', '.join(hosts)}), and its connections have "
            f"no {', '.join(missing)}: web processes and tasks may wait for minutes, or hours, "
            "when that host is gone.",
            hint=f"Set them in DATABASES[{name!r}]['OPTIONS'], for example {ADVICE}.",
            id="steady_queue.W203",
        )
    wanted = str(parameters.get("target_session_attrs", "any"))
    if len(hosts) > 1 and wanted not in WRITERS:
        yield Warning(
            f"Database {name!r} has several hosts ({', '.join(hosts)}), and "
            f"target_session_attrs is {wanted!r}: a connection may lead to a standby, where no job "
            "can be enqueued or claimed.",
            hint=f"Set DATABASES[{name!r}]['OPTIONS']['target_session_attrs'] to 'read-write'.",
            id="steady_queue.W204",
        )


def hosts_of(parameters: Mapping[str, Any]) -> list[str]:
    """Return the hosts that libpq may connect to, by their addresses if these are given."""
    given = str(parameters.get("hostaddr") or parameters.get("host") or "")
    return [each.strip() for each in given.split(",")]


def is_local(host: str) -> bool:
    """Return whether a host is this one for sure: a socket, or an address of the loopback."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def missing_time_outs(parameters: Mapping[str, Any]) -> list[str]:
    """Return the names of the time-outs that are not set, or switched off."""
    missing = [name for name in TIME_OUTS if _is_off(parameters.get(name))]
    if "keepalives" in parameters and _is_off(parameters["keepalives"]):
        missing = [*missing, "keepalives"]
    return missing


def _is_off(value: Any) -> bool:
    return value is None or str(value).strip() in ("", "0", "-1")


def _parameters(connection: BaseDatabaseWrapper) -> dict[str, Any]:
    """Return what the session was opened with, also by the environment and by a service file.

    The driver tries the hosts of the settings one by one: the session knows of one of them only.
    """
    wrapper: Any = connection
    return {**wrapper.connection.info.get_parameters(), **wrapper.get_connection_params()}
