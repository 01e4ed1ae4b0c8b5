"""MySQL Group Replication: three members that elect their writer."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from tests import documents
from tests.servers import mysql

from .mysql_cluster import MySQLCluster
from .mysql_node import MySQLNode
from .mysql_programs import MySQLPrograms

EXAMPLE = documents.WORKSPACE / "examples" / "clusters" / "group_replication"
MEMBERS = """
SELECT member_id, member_host, member_role, member_state
FROM performance_schema.replication_group_members
"""
SEVERAL = (
    "--loose-group-replication-single-primary-mode=OFF",
    "--loose-group-replication-enforce-update-everywhere-checks=ON",
)
PORT = 33061


class GroupReplication(MySQLCluster):
    """Three members, with the files of ``examples/clusters/group_replication``."""

    name = "group_replication"
    example = EXAMPLE
    node_names = ("member1", "member2", "member3")

    def __init__(self, folder: Path, *, several_primaries: bool = False) -> None:
        self._programs = MySQLPrograms(mysql.find())
        self._options = SEVERAL if several_primaries else ()
        super().__init__(folder, subnet=2)

    def primary(self) -> MySQLNode | None:
        """Return the primary that a majority of the group knows; of several, the first one."""
        for node in self.nodes:
            members = node.ask(MEMBERS)
            online = {host for _, host, _, state in members if state == "ONLINE"}
            if 2 * len(online) > len(self.nodes):
                primaries = {host for _, host, role, _ in members if role == "PRIMARY"} & online
                return next((each for each in self.nodes if each.address[0] in primaries), None)
        return None

    def switch_over(self) -> None:
        """Have the group make another member the primary."""
        old = self.expect_primary()
        identities = {host: member for member, host, _, _ in old.run(MEMBERS)}
        new = next(node for node in self.nodes if node is not old)
        member = UUID(str(identities[new.address[0]]))
        old.run(f"SELECT group_replication_set_as_primary('{member}')")
        self.wait("the new primary", 60, lambda: self.primary() is new)

    def is_complete(self) -> bool:
        states = [[row[3] for row in node.ask(MEMBERS)] for node in self.nodes]
        return states == [["ONLINE"] * len(self.nodes)] * len(self.nodes)

    def _command(self, number: int) -> list[str | Path]:
        host = self.network.address(number)
        seeds = ",".join(f"{each}:{PORT}" for each in self.hosts)
        return [
            *self._programs.server(EXAMPLE / "member.cnf"),
            *(f"--server-id={number}", f"--report-host={host}", "--mysqlx=OFF"),
            f"--loose-group-replication-local-address={host}:{PORT}",
            f"--loose-group-replication-group-seeds={seeds}",
            *self._options,
            *(["--user=mysql"] if self.account else []),
        ]

    def _prepare(self, node: MySQLNode) -> None:
        self._run_for(
            node,
            *self._programs.server(None),
            *(f"--datadir={node.folder / 'data'}", "--initialize-insecure"),
        )

    def _found(self) -> None:
        for node in self.nodes:
            node.start()
            node.run_file(EXAMPLE / "users.sql")
            node.run_file(EXAMPLE / ("found.sql" if node is self.nodes[0] else "join.sql"))

    @property
    def account(self) -> str | None:
        return self._programs.account
