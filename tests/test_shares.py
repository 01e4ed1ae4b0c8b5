"""What runs leave to each other is run by one of them."""

from __future__ import annotations

import pytest

from .servers.kinds import KINDS
from .shares import Shares, is_on_its_server, servers_of

NAMES = [f"tests/models/test_x.py::test_{number}" for number in range(200)]


def thinned(nodeids: list[str]) -> list[str]:
    servers = servers_of(nodeids)
    return [each for each in nodeids if is_on_its_server(each, servers)]


def test_a_test_of_all_databases_keeps_the_default_one_and_a_server() -> None:
    databases = ["default", *KINDS]
    left = thinned([f"{name}[{each}-0]" for name in NAMES for each in databases])
    for name in NAMES:
        first, *servers = [each for each in left if each.startswith(f"{name}[")]
        assert first == f"{name}[default-0]"
        assert len(servers) == 1
    counts = [sum(f"[{each}-" in name for name in left) for each in KINDS]
    assert sum(counts) == len(NAMES)
    assert min(counts) > len(NAMES) / 5


def test_the_parameters_of_a_test_are_divided_by_themselves() -> None:
    names = [f"{NAMES[0]}[{number}-{each}]" for number in range(50) for each in KINDS]
    left = thinned(names)
    assert len(left) == 50
    assert all(any(each.endswith(f"-{kind}]") for each in left) for kind in KINDS)


@pytest.mark.parametrize(
    "names",
    [
        [f"tests/mysql/test_x.py::test_x[{each}]" for each in KINDS],
        [f"{NAMES[0]}[mysql]"],
        [f"{NAMES[0]}[of mysqlx]", f"{NAMES[0]}[postgresql]"],
        [f"tests/models/test_x.py::Test{each.title}::test_x" for each in KINDS.values()],
    ],
    ids=["of databases", "of one", "of none", "classes"],
)
def test_these_all_run(names: list[str]) -> None:
    assert thinned(names) == names


def test_each_test_is_in_one_share() -> None:
    shares = [Shares("1,2,3/8"), Shares("4,5/8"), Shares("6,7,8/8")]
    assert all(sum(share.has(name) for share in shares) == 1 for name in NAMES)
    assert all(any(share.has(name) for name in NAMES) for share in shares)
