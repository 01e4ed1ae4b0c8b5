"""MariaDB Galera Cluster: three nodes that take writes, behind a proxy that gives one of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests import documents
from tests.servers import mariadb
from tests.servers.programs import NotFound

from .mysql_cluster import MySQLCluster
from .mysql_node import MySQLNode

EXAMPLE = documents.WORKSPACE / "examples" / "clusters" / "galera"
PROVIDER = Path("/usr/lib/galera/libgalera_smm.so")
SYNCED = "4"


class Galera(MySQLCluster):
    """Three nodes of MariaDB, with the files of ``examples/clusters/galera``."""

    name = "galera"
    example = EXAMPLE
    node_names = ("galera1", "galera2", "galera3")

    def __init__(self, folder: Path) -> None:
        if not PROVIDER.exists():
            raise NotFound(f"no {PROVIDER}: install galera-4")
        for program in ("mariabackup", "socat"):
            if shutil.which(program) is None:
                raise NotFound(f"no {program}: install mariadb-backup and socat")
        self._programs = mariadb.find()
        super().__init__(folder, subnet=1)

    def primary(self) -> MySQLNode | None:
        """Return the node that the proxy gives: all of them take writes."""
        rows = self.ask_proxy("SELECT @@wsrep_node_name")
        return next((node for node in self.nodes if [(node.name,)] == rows), None)

    def switch_over(self) -> None:
        """Let the writer fall behind on purpose, so that the proxy takes another one."""
        old = self.expect_primary()
        old.run("SET GLOBAL wsrep_desync = ON")
        try:
            self.wait("another writer", 30, lambda: self.primary() not in (None, old))
        finally:
            old.run("SET GLOBAL wsrep_desync = OFF")

    def is_complete(self) -> bool:
        is_well = all(
            _status(node, "wsrep_local_state") == SYNCED
            and _status(node, "wsrep_cluster_size") == str(len(self.nodes))
            for node in self.nodes
        )
        # The proxy goes back to its first node some time after that is well, and ends sessions.
        return is_well and self.primary() is self.nodes[0]

    def _command(self, number: int) -> list[str | Path]:
        return [
            *(self._programs.server, f"--defaults-file={EXAMPLE / 'galera.cnf'}"),
            *(f"--wsrep-node-name={self.node_names[number - 1]}",),
            f"--wsrep-node-address={self.network.address(number)}",
            f"--wsrep-cluster-address=gcomm://{','.join(self.hosts)}",
            *(["--user=mysql"] if self._programs.account else []),
        ]

    def _prepare(self, node: MySQLNode) -> None:
        self._run_for(
            node,
            *(self._programs.installer, "--no-defaults", f"--datadir={node.folder / 'data'}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        )

    def _found(self) -> None:
        first, *others = self.nodes
        first.start("--wsrep-new-cluster")
        self.wait("a cluster of one", 30, lambda: _status(first, "wsrep_local_state") == SYNCED)
        first.run_file(EXAMPLE / "users.sql")
        for node in others:
            node.start()

    @property
    def account(self) -> str | None:
        return self._programs.account


def _status(node: MySQLNode, name: str) -> Any:
    rows = node.ask(f"SHOW STATUS LIKE '{name}'")
    return rows[0][1] if rows else None
