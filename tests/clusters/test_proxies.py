"""The checks of the proxies in ``examples/clusters``: what they send, and what servers answer."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
from contextlib import closing

import pytest

from tests import documents
from tests.servers.address import Address
from tests.servers.client import connect, query
from tests.servers.kinds import KINDS

FOLDER = documents.WORKSPACE / "examples" / "clusters"
ENGINES = {"galera": "mariadb", "group_replication": "mysql"}
EXAMPLES = (*ENGINES, "patroni")
KINDS_OF_NODES = ("GALERA", "MEMBER", "POSTGRES")
ADDRESSES = {
    name: f"127.0.0.1:{port}"
    for port, name in enumerate(
        ["QUEUE", *(f"{kind}{number}" for kind in KINDS_OF_NODES for number in (1, 2, 3))],
        start=1,
    )
}


class Check:
    """The steps of ``option tcp-check``, played as haproxy plays them."""

    def __init__(self, engine: str) -> None:
        lines = (FOLDER / engine / "haproxy.cfg").read_text().splitlines()
        words = (shlex.split(line) for line in lines if line.strip().startswith("tcp-check"))
        self.steps = [(step, *rest) for _, step, *rest in words]

    @property
    def packets(self) -> list[bytes]:
        """What is sent between two answers."""
        found = [b""]
        for step, *rest in self.steps:
            if step == "send-binary":
                found[-1] += bytes.fromhex(rest[0])
            elif step == "send":
                found[-1] += rest[0].encode()
            elif found[-1]:
                found.append(b"")
        return [each for each in found if each]

    def answer(self, address: Address) -> bytes:
        """Return what a server says last, once each step before has got what it expects."""
        with socket.create_connection((address.host, address.port), timeout=10) as connection:
            for step, *rest in self.steps[:-1]:
                if step == "send-binary":
                    connection.sendall(bytes.fromhex(rest[0]))
                elif step == "send":
                    connection.sendall(rest[0].encode())
                elif step == "expect":
                    kind, pattern = rest
                    assert kind == "rbinary"
                    said = connection.recv(65536)
                    assert re.search(pattern, said.hex().upper()), said
            # The server closes the connection, as it was told at the end.
            return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("engine", ENGINES)
def test_packets_are_as_long_as_they_say(engine: str) -> None:
    login, asked = Check(engine).packets
    question, end = asked[:-5], asked[-5:]
    for packet in (login, question, end):
        assert int.from_bytes(packet[:3], "little") == len(packet) - 4
    assert (question[4], end[4]) == (3, 1)  # COM_QUERY, COM_QUIT


@pytest.mark.parametrize("engine", EXAMPLES)
@pytest.mark.skipif(shutil.which("haproxy") is None, reason="there is no haproxy")
def test_haproxy_accepts_the_configuration(engine: str) -> None:
    done = subprocess.run(
        ["haproxy", "-c", "-f", FOLDER / engine / "haproxy.cfg"],
        env=ADDRESSES,
        executable=shutil.which("haproxy"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("engine", EXAMPLES)
def test_the_containers_give_the_proxy_each_address_that_it_wants(engine: str) -> None:
    wanted = re.findall(r'"\$\{(\w+)\}"', (FOLDER / engine / "haproxy.cfg").read_text())
    given = re.findall(r"^      ([A-Z0-9]+): \S+:(?:3306|5432)$|^      (QUEUE):",
                       (FOLDER / engine / "compose.yaml").read_text(), re.MULTILINE)  # fmt: skip
    assert sorted(wanted) == sorted(first or second for first, second in given)


@pytest.mark.parametrize(
    ("engine", "alias"),
    [pytest.param(*each, marks=pytest.mark.server(each[1])) for each in ENGINES.items()],
)
def test_a_server_of_no_cluster_lets_the_check_in_and_is_no_writer(engine: str, alias: str) -> None:
    address = KINDS[alias].given()
    assert address is not None
    statements = (FOLDER / engine / "users.sql").read_text().split(";")
    check = Check(engine)
    # Users are the whole server's, and another run may test the same.
    with closing(connect(address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SELECT GET_LOCK('haproxy_check', 60)")
        assert cursor.fetchall() == [(1,)]
        for statement in statements:
            if "TO haproxy_check" in statement or "CREATE USER haproxy_check" in statement:
                query(address, statement)
        try:
            answer = check.answer(address)
        finally:
            query(address, "DROP USER haproxy_check@'%'")
    assert b"answer" in answer  # The name of the column.
    assert check.steps[-1][2].encode() not in answer
