"""Addresses are read as they are written, and refused if they cannot be one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .address import DRIVER, Address, BadAddress
from .kinds import KINDS


def test_an_address_survives_being_written_down() -> None:
    address = Address("postgresql", "a@b", "p:/?# ü", "::1", 5433, "queue")
    assert Address.parse(str(address), "postgresql") == address


@pytest.mark.parametrize(("scheme", "port"), [("postgresql", 5432), ("mysql", 3306)])
def test_user_password_and_port_may_be_left_out(scheme: str, port: int) -> None:
    expected = Address(scheme, "", "", "db.example", port, "queue")
    assert Address.parse(f"{scheme}://db.example/queue", scheme) == expected


@pytest.mark.parametrize(
    "text",
    [
        "mysql://user@host/name",
        "postgresql://host",
        "postgresql:///name",
        "postgresql://host:port/name",
        "postgresql://host:99999/name",
        "host/name",
    ],
)
def test_anything_else_is_refused_with_the_form_that_is_expected(text: str) -> None:
    with pytest.raises(BadAddress, match="host"):
        Address.parse(text, "postgresql")


def test_the_driver_of_mysql_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address("mysql", "root", "secret", "127.0.0.1", 3306, "queue")
    monkeypatch.delenv(DRIVER, raising=False)
    assert address.settings()["ENGINE"] == "mysql.connector.django"
    monkeypatch.setenv(DRIVER, "mysqlclient")
    assert address.settings()["ENGINE"] == "django.db.backends.mysql"
    monkeypatch.setenv(DRIVER, "pymysql")
    with pytest.raises(BadAddress, match="'pymysql' is none of connector, mysqlclient"):
        address.settings()


@pytest.mark.parametrize("alias", KINDS)
def test_contributors_are_told_the_addresses_of_the_compose_file(
    alias: str, workspace: Path
) -> None:
    kind = KINDS[alias]
    text = (workspace / "CONTRIBUTING.md").read_text()
    [found] = re.findall(rf"^export {kind.variable}=(\S+)$", text, re.MULTILINE)
    address = Address.parse(found, kind.scheme)
    services = re.split(r"^  (\w+):$", (workspace / "compose.yaml").read_text(), flags=re.MULTILINE)
    service = dict(zip(services[1::2], services[2::2], strict=True))[alias]
    assert f'"127.0.0.1:{address.port}:' in service
    for value in (address.password, address.name):
        assert re.search(rf"_(PASSWORD|DB|DATABASE): {value}$", service, re.MULTILINE)
