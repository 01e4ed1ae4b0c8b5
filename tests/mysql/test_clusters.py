"""The checks of clusters, by planted answers of their servers."""

from __future__ import annotations

from typing import Any
from unittest import mock

from django.core.checks import CheckMessage
from django.db import OperationalError
from django.test import SimpleTestCase

from steady_queue_mysql import galera, group
from steady_queue_mysql.group import Member

from .cases import ServerCase, on_each_server

SOUND = {
    "innodb_autoinc_lock_mode": "2",
    "binlog_format": "ROW",
    "wsrep_cluster_size": "3",
    "wsrep_cluster_status": "Primary",
    "wsrep_ready": "ON",
    "wsrep_local_state_comment": "Synced",
}


def ids(messages: Any) -> list[str]:
    return [message.id.removeprefix("steady_queue.") for message in messages]


class TestGalera(SimpleTestCase):
    def found(self, **changes: str) -> list[CheckMessage]:
        return list(galera.problems("queue", SOUND | changes))

    def test_a_sound_node_is_told_of(self) -> None:
        [message] = self.found()
        self.assertEqual(
            message.msg,
            "Database 'queue' is on a node of a Galera cluster (wsrep_cluster_size is 3): the "
            "queue sends it one statement at a time, and workers on other nodes see what is "
            "enqueued here by polling.",
        )
        self.assertEqual(ids([message]), ["I301"])

    def test_a_node_outside_the_majority(self) -> None:
        _, message = self.found(
            wsrep_cluster_status="non-Primary", wsrep_ready="OFF",
            wsrep_local_state_comment="Initialized",
        )  # fmt: skip
        self.assertEqual(
            message.msg,
            "The node of database 'queue' takes no part in its Galera cluster: "
            "wsrep_cluster_status is non-Primary, wsrep_ready is OFF, wsrep_local_state_comment "
            "is Initialized.",
        )
        self.assertEqual(ids([message]), ["E313"])
        self.assertEqual(ids(self.found(wsrep_ready="OFF")), ["I301", "E313"])

    def test_settings_that_do_not_suit(self) -> None:
        self.assertEqual(ids(self.found(innodb_autoinc_lock_mode="1")), ["I301", "W308"])
        self.assertEqual(ids(self.found(binlog_format="MIXED")), ["I301", "W309"])
        self.assertEqual(ids(self.found(binlog_format="STATEMENT")), ["I301"])


class TestGroups(SimpleTestCase):
    def found(self, *states: str, own: int = 0) -> list[CheckMessage]:
        """Each state is such as ``"ONLINE PRIMARY"``."""
        members = [
            Member(f"db{number}", 3306, state, role, is_own=number == own)
            for number, (state, role) in enumerate(map(str.split, states))
        ]
        return list(group.problems("queue", members))

    def test_the_primary_of_a_sound_group_and_a_server_without_one(self) -> None:
        self.assertEqual(self.found("ONLINE PRIMARY", "ONLINE SECONDARY", "ONLINE SECONDARY"), [])
        self.assertEqual(self.found(), [])
        # One of three may be away.
        self.assertEqual(
            self.found("ONLINE PRIMARY", "ONLINE SECONDARY", "UNREACHABLE SECONDARY"), []
        )

    def test_a_member_that_is_not_online(self) -> None:
        for state in ("ERROR", "OFFLINE", "RECOVERING"):
            [message] = self.found(f"{state} SECONDARY", "ONLINE PRIMARY")
            self.assertEqual(
                message.msg,
                "The server of database 'queue' takes no part in its replication group: it is "
                f"{state}.",
            )
            self.assertEqual(ids([message]), ["E314"])

    def test_a_group_without_a_majority(self) -> None:
        [message] = self.found("ONLINE PRIMARY", "UNREACHABLE SECONDARY", "UNREACHABLE SECONDARY")
        self.assertEqual(
            message.msg,
            "The server of database 'queue' reaches 1 of the 3 members of its replication group, "
            "itself included, which is no majority: writes wait.",
        )
        self.assertIn("db1:3306, db2:3306", str(message.hint))
        self.assertEqual(ids([message]), ["E315"])
        self.assertEqual(ids(self.found("ONLINE PRIMARY", "UNREACHABLE SECONDARY")), ["E315"])

    def test_a_secondary_is_told_where_the_primary_is(self) -> None:
        [message] = self.found("ONLINE SECONDARY", "ONLINE PRIMARY", "ONLINE SECONDARY")
        self.assertEqual(ids([message]), ["E316"])
        self.assertEqual(
            message.hint,
            "Name the primary in DATABASES, now db1:3306, or a proxy that leads there.",
        )

    def test_a_group_with_several_primaries(self) -> None:
        [message] = self.found("ONLINE PRIMARY", "ONLINE PRIMARY", "ERROR PRIMARY")
        self.assertEqual(
            message.msg,
            "The replication group of database 'queue' has 2 primaries (db0:3306, db1:3306): "
            "transactions on two of them conflict when they commit, and are done again.",
        )
        self.assertEqual(ids([message]), ["W310"])

    def test_members_that_may_not_be_read_are_none(self) -> None:
        denied, other = OperationalError(1142, "SELECT command denied"), OperationalError(1, "")
        with mock.patch.object(group, "rows_of", side_effect=denied):
            self.assertEqual(group.members(mock.Mock()), [])
        with (
            mock.patch.object(group, "rows_of", side_effect=other),
            self.assertRaises(OperationalError),
        ):
            group.members(mock.Mock())


class Alone(ServerCase):
    def test_a_server_of_no_cluster_is_not_told_of_one(self) -> None:
        self.assertEqual(self.dialect.checks(self.connection), [])


on_each_server(globals(), Alone)
