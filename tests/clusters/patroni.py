"""PostgreSQL under Patroni: three nodes with an etcd each, behind a proxy that asks Patroni."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg

from tests import documents
from tests.servers import postgres
from tests.servers.programs import NotFound, executables, version_of

from .machine import Command, Machine
from .patroni_node import PORT, REST, PatroniNode, ask
from .sql_files import statements_of
from .three_nodes import ThreeNodes

EXAMPLE = documents.WORKSPACE / "examples" / "clusters" / "patroni"
#: What users are told to set, where a server may be on another machine.
OPTIONS = {
    **{"connect_timeout": 3, "tcp_user_timeout": 5000},
    **{"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3},
}


class Patroni(ThreeNodes[PatroniNode]):
    """Three nodes, with the files of ``examples/clusters/patroni``.

    ``is_direct``: clients know all nodes and look for the primary by themselves, without the proxy.
    """

    name = "patroni"
    vendor = "postgresql"
    example = EXAMPLE
    node_names = ("postgres1", "postgres2", "postgres3")

    def __init__(self, folder: Path, *, is_direct: bool = False) -> None:
        self._is_direct = is_direct
        self._server = postgres.find()
        self._etcd = _program("etcd", self._server.account)
        self._patroni = _program("patroni", self._server.account)
        super().__init__(folder, "pg", subnet=3)

    def database(self, node: PatroniNode | None = None) -> dict[str, Any]:
        host, port, options = "127.0.0.1", str(self.port), {}
        if node is not None:
            host, port = node.address[0], str(PORT)
        elif self._is_direct:
            host, port = ",".join(self.hosts), ",".join([str(PORT)] * len(self.hosts))
            options = {"OPTIONS": {"target_session_attrs": "read-write", **OPTIONS}}
        return {
            "ENGINE": "django.db.backends.postgresql",
            **{"NAME": "queue", "USER": "queue", "PASSWORD": "change-me"},
            **{"HOST": host, "PORT": port},
            **options,
        }

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the queue's database, through the proxy."""
        login = {"dbname": "queue", "user": "queue", "password": "change-me"}
        return ask({"host": "127.0.0.1", "port": self.port, **login}, statement)

    def empty(self) -> None:
        """Make the queue's database anew."""
        self.expect_primary().run(
            *("DROP DATABASE queue WITH (FORCE)", "CREATE DATABASE queue OWNER queue"),
            database="postgres",
        )

    def primary(self) -> PatroniNode | None:
        """Return the node whose Patroni says that it is the primary."""
        # A frozen node, which is asked first, must not make its successor appear late.
        return next((node for node in self.nodes if node.status("primary", 1.0) == 200), None)

    def switch_over(self) -> None:
        """Move the leader's key to the node that each COMMIT waits for."""
        old = self.expect_primary()
        old.tell("switchover", leader=old.name)

    def is_complete(self) -> bool:
        leader = self.primary()
        members = leader.members() if leader else []
        roles = sorted(each["role"] for each in members)
        well = all(each["state"] in ("running", "streaming") for each in members)
        return well and roles == ["leader", "replica", "sync_standby"]

    def answers(self) -> bool:
        try:
            return self.query("SELECT pg_is_in_recovery()") == [(False,)]
        except psycopg.Error:
            return False

    def _found(self) -> None:
        for node in self.nodes:
            node.begin()
        self.wait("a first primary", 90, lambda: self.primary() is not None)
        self.expect_primary().run(*statements_of(EXAMPLE / "users.sql"), database="postgres")

    def _new_node(self, number: int, name: str) -> PatroniNode:
        folder = self.folder / name
        folder.mkdir(parents=True)
        if self._server.account:
            shutil.chown(folder, self._server.account)
        machine = Machine(self.network, number, self._server.account, folder)
        programs: dict[str, Command] = {
            "etcd": self._etcd_command(name, machine.host, folder),
            "patroni": [self._patroni, EXAMPLE / "patroni.yml"],
        }
        return PatroniNode(name, machine, programs, self._environment(name, machine.host, folder))

    def _etcd_command(self, name: str, host: str, folder: Path) -> Command:
        peers = ",".join(
            f"{each}=http://{address}:2380"
            for each, address in zip(self.node_names, self.hosts, strict=True)
        )
        return [
            *(self._etcd, f"--name={name}", f"--data-dir={folder / 'etcd'}"),
            *(f"--listen-peer-urls=http://{host}:2380", f"--listen-client-urls=http://{host}:2379"),
            f"--initial-advertise-peer-urls=http://{host}:2380",
            f"--advertise-client-urls=http://{host}:2379",
            f"--initial-cluster={peers}",
        ]

    def _environment(self, name: str, host: str, folder: Path) -> dict[str, str]:
        return {
            "PATRONI_NAME": name,
            "PATRONI_ETCD3_HOSTS": ",".join(f"{each}:2379" for each in self.hosts),
            "PATRONI_RESTAPI_LISTEN": f"{host}:{REST}",
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"{host}:{REST}",
            "PATRONI_POSTGRESQL_LISTEN": f"{host}:{PORT}",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": f"{host}:{PORT}",
            "PATRONI_POSTGRESQL_DATA_DIR": str(folder / "data"),
            "PATRONI_POSTGRESQL_PGPASS": str(folder / "pgpass"),
            "PATRONI_POSTGRESQL_BIN_DIR": str(self._server.programs),
        }


def _program(name: str, account: str | None) -> Path:
    found = executables(name, ("/opt/patroni/bin",))
    if not found:
        raise NotFound(f"no {name}: tests/clusters/install installs it")
    # Python below a home folder cannot be run by another account.
    version_of(found[0], account)
    return found[0]
