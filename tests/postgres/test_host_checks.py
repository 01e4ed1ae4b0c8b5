"""Checks of where a connection leads to: to a primary only, and never to a dead end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
from django.core.checks import CheckMessage

from steady_queue_postgres import host_checks

from ..servers import postgres
from ..servers.address import Address
from ..servers.private import PrivateServer
from ..servers.programs import NotFound
from ..servers.recipe import Plan
from .cases import OtherAlias

#: An address that belongs to nobody. The driver takes the host before it, and never asks this one.
NOBODY = "192.0.2.1"
TIME_OUTS = {"connect_timeout": 3, "tcp_user_timeout": 5000, "keepalives_idle": 5}


@dataclass(frozen=True)
class Standby:
    """A recipe of a server in recovery, which waits for a primary that never comes."""

    recipe: postgres.Postgres

    @property
    def account(self) -> str | None:
        return self.recipe.account

    @property
    def origin(self) -> str:
        return self.recipe.origin

    def plan(self, folder: Path, port: int) -> Plan:
        plan = self.recipe.plan(folder, port)
        signal_file = folder / "data" / "standby.signal"
        begin = ["sh", "-c", 'touch "$0" && exec "$@"', signal_file]
        return replace(plan, serve=[*begin, *plan.serve])

    def address(self, port: int) -> Address:
        return self.recipe.address(port)


@contextmanager
def standby() -> Iterator[PrivateServer]:
    """Run a standby for a while; skip the test where no server is installed."""
    try:
        recipe = Standby(postgres.find())
    except NotFound as error:
        raise SkipTest(str(error)) from None
    with closing(PrivateServer(recipe)) as server:
        yield server


class TestHosts(OtherAlias):
    def setUp(self) -> None:
        super().setUp()
        address = self.connection.settings_dict["HOST"]
        if not host_checks.is_local(address):
            self.skipTest("the server of the tests is on another host")
        # Names are for certificates only where there are addresses.
        self.several = {"HOST": "db1,db2", "PORT": f"{self.port},{self.port}"}
        self.addresses = {"hostaddr": f"127.0.0.1,{NOBODY}"}

    def problems_of(self, options: dict[str, Any], **changes: Any) -> list[CheckMessage]:
        with self.configured(options, **changes):
            return self.problems()

    @property
    def port(self) -> str:
        return str(self.connection.settings_dict["PORT"] or 5432)

    def test_a_server_on_this_host_needs_no_time_outs(self) -> None:
        assert self.problems_of({}) == []

    def test_hosts_without_time_outs_are_reported(self) -> None:
        writing = {**self.addresses, "target_session_attrs": "read-write"}
        [found] = self.problems_of({**writing, "tcp_user_timeout": 5000}, **self.several)
        assert found.id == "steady_queue.W203"
        assert f"(127.0.0.1, {NOBODY})" in found.msg
        assert "have no connect_timeout, keepalives_idle:" in found.msg
        assert self.problems_of({**writing, **TIME_OUTS}, **self.several) == []

    def test_hosts_among_which_a_standby_may_be_chosen_are_reported(self) -> None:
        """Though the first of them is the primary now."""
        [found] = self.problems_of({**self.addresses, **TIME_OUTS}, **self.several)
        assert found.id == "steady_queue.W204"
        assert "target_session_attrs is 'any'" in found.msg

    def test_the_environment_counts(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGCONNECT_TIMEOUT", "3")
            patch.setenv("PGTARGETSESSIONATTRS", "read-write")
            [found] = self.problems_of(self.addresses, **self.several)
        assert "have no tcp_user_timeout, keepalives_idle:" in found.msg


class TestStandby(OtherAlias):
    def test_a_standby_is_called_one(self) -> None:
        with standby() as server:
            port, user = str(server.address.port), server.address.user
            with self.configured({}, HOST="127.0.0.1", PORT=port, USER=user, NAME="postgres"):
                [found] = self.problems()
        assert found.id == "steady_queue.E202"
        assert "is a standby, which is read-only" in found.msg

    def test_what_is_read_only_by_its_settings_is_not(self) -> None:
        with self.configured({"options": "-c default_transaction_read_only=on"}):
            [found] = self.problems()
        assert found.id == "steady_queue.E202"
        assert "standby" not in found.msg
        assert "default_transaction_read_only" in str(found.hint)


@pytest.mark.parametrize(
    "host", ["", "/run/postgresql", "@abstract", "localhost", "127.0.1.1", "::1"]
)
def test_local_hosts(host: str) -> None:
    assert host_checks.is_local(host)


@pytest.mark.parametrize("host", ["db", "localhost.example", "10.0.0.5", "fe80::1"])
def test_other_hosts(host: str) -> None:
    assert not host_checks.is_local(host)


@pytest.mark.parametrize("value", ["0", 0, "", None, -1])
def test_a_time_out_that_is_off_is_missing(value: Any) -> None:
    parameters = {**TIME_OUTS, "tcp_user_timeout": value}
    assert host_checks.missing_time_outs(parameters) == ["tcp_user_timeout"]


def test_keepalives_that_are_off_are_missing() -> None:
    assert host_checks.missing_time_outs({**TIME_OUTS, "keepalives": "0"}) == ["keepalives"]
    assert host_checks.missing_time_outs({**TIME_OUTS, "keepalives": 1}) == []
