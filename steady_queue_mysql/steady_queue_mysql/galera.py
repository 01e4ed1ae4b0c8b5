"""What a node of Galera says of its cluster, and the checks of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.core.checks import CheckMessage, Error, Info, Warning
from django.db.backends.base.base import BaseDatabaseWrapper

#: Of variables and of the status.
ASK_VARIABLES = """
SHOW VARIABLES WHERE Variable_name IN ('innodb_autoinc_lock_mode', 'binlog_format')"""
ASK_STATUS = """
SHOW GLOBAL STATUS WHERE Variable_name IN
('wsrep_cluster_size', 'wsrep_cluster_status', 'wsrep_ready', 'wsrep_local_state_comment')"""
INTERLEAVED = "2"


def check_galera(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    """Yield what is worth knowing of the cluster, and what is wrong with it."""
    return problems(connection.alias, {**_ask(connection, ASK_VARIABLES), **_status(connection)})


def is_serving(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the node takes part in its cluster: otherwise it refuses to read tables."""
    return _is_serving(_status(connection))


def problems(alias: str, facts: Mapping[str, str]) -> Iterator[CheckMessage]:
    """Yield the checks' messages; ``facts`` are variables and status of a node."""
    size = facts.get("wsrep_cluster_size", "?")
    yield Info(
        f"Database {alias!r} is on a node of a Galera cluster (wsrep_cluster_size is {size}): the "
        "queue sends it one statement at a time, and workers on other nodes see what is enqueued "
        "here by polling.",
        hint="Let all processes of the project write to the same node.",
        id="steady_queue.I301",
    )
    if not _is_serving(facts):
        yield Error(
            f"The node of database {alias!r} takes no part in its Galera cluster: "
            f"{_standing(facts)}.",
            hint="Connect to a node of the majority. If there is none, start the nodes that are "
            "missing; the most advanced one first, with wsrep_new_cluster, if all were down.",
            id="steady_queue.E313",
        )
    mode = facts.get("innodb_autoinc_lock_mode", INTERLEAVED)
    if mode != INTERLEAVED:
        yield Warning(
            f"innodb_autoinc_lock_mode of database {alias!r} is {mode}: on a node of Galera, "
            "enqueues wait for each other and may deadlock.",
            hint="Set innodb_autoinc_lock_mode to 2 on every node, and restart them one by one.",
            id="steady_queue.W308",
        )
    log_format = facts.get("binlog_format", "ROW").upper()
    if log_format not in ("ROW", "STATEMENT"):  # E305 tells of STATEMENT.
        yield Warning(
            f"binlog_format of database {alias!r} is {log_format}; Galera replicates ROW only.",
            hint="Set binlog_format to ROW on every node.",
            id="steady_queue.W309",
        )


def _is_serving(facts: Mapping[str, str]) -> bool:
    return (
        facts.get("wsrep_cluster_status", "Primary").upper() == "PRIMARY"
        and facts.get("wsrep_ready", "ON").upper() == "ON"
    )


def _standing(facts: Mapping[str, str]) -> str:
    names = ("wsrep_cluster_status", "wsrep_ready", "wsrep_local_state_comment")
    return ", ".join(f"{name} is {facts[name]}" for name in names if name in facts)


def _status(connection: BaseDatabaseWrapper) -> dict[str, str]:
    return _ask(connection, ASK_STATUS)


def _ask(connection: BaseDatabaseWrapper, sql: str) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return {str(name): str(value) for name, value in cursor.fetchall()}
