"""What runs leave to each other is run by one of them, and what a merge needs is run."""

from __future__ import annotations

import pytest

from .servers.kinds import KINDS
from .shares import Shares
from .thinning import thinned

NAMES = [f"tests/models/test_x.py::test_{number}" for number in range(200)]


def test_a_test_of_all_databases_keeps_the_default_one_and_a_server() -> None:
    left = thinned(f"{name}[{each}-0]" for name in NAMES for each in ["default", *KINDS])
    assert len(left) == 2 * len(NAMES)
    assert {f"{name}[default-0]" for name in NAMES} < left
    assert {each.partition("[")[0] for each in left if "default" not in each} == {*NAMES}
    counts = [sum(f"[{each}-" in name for name in left) for each in KINDS]
    assert min(counts) > len(NAMES) / 5


def test_the_order_of_tests_decides_nothing() -> None:
    names = [f"{name}[{each}]" for name in NAMES for each in KINDS]
    assert thinned(names) == thinned(names[::-1])


def test_the_parameters_of_a_test_are_divided_by_themselves() -> None:
    left = thinned(f"{NAMES[0]}[{number}-{each}]" for number in range(50) for each in KINDS)
    assert len(left) == 50
    assert all(any(each.endswith(f"-{kind}]") for each in left) for kind in KINDS)


def test_a_test_of_processes_keeps_one_database() -> None:
    names = [f"tests/processes/test_x.py::test_{number}" for number in range(50)]
    left = thinned(f"{name}[{each}]" for name in names for each in ["sqlite", *KINDS])
    assert sorted(each.partition("[")[0] for each in left) == sorted(names)
    assert all(any(f"[{each}]" in name for name in left) for each in ["sqlite", *KINDS])


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
    assert thinned(names) == {*names}


def test_each_test_is_in_one_share() -> None:
    shares = [Shares("1,2,3/8"), Shares("4,5/8"), Shares("6,7,8/8")]
    assert all(sum(share.has(name) for share in shares) == 1 for name in NAMES)
    assert all(any(share.has(name) for name in NAMES) for share in shares)
