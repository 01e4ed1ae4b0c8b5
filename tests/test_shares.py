"""What runs leave to each other is run by one of them, and what a merge needs is run."""

from __future__ import annotations

import pytest

from .servers.kinds import KINDS
from .shares import Shares
from .thinning import thinned

NAMES = [f"tests/models/test_x.py::test_{number}" for number in range(200)]


def left_of(module: str, *databases: str) -> list[str]:
    """Return on which of these databases a test of ``module`` is left to run."""
    names = {f"{module}::test_x[{each}-0]": each for each in databases}
    assert thinned(names) == thinned(reversed(names))
    return [names[each] for each in names if each in thinned(names)]


def test_where_postgresql_is_missing_sqlite_takes_its_place() -> None:
    names = [f"tests/processes/test_x.py::test_x[{each}]" for each in ("sqlite", *KINDS)]
    assert thinned(names, {"postgres"}) == {names[0]}
    assert thinned(names[1:], {"postgres"}) == {names[2]}


@pytest.mark.parametrize(
    ("module", "left"),
    [
        ("tests/models/test_x.py", ["default", "postgres"]),
        ("tests/models/test_unique_races.py", ["default", "postgres", "mysql"]),
        ("tests/processes/test_x.py", ["postgres"]),
        ("tests/admin/test_x.py", ["postgres"]),
        ("tests/processes/test_locked.py", ["postgres"]),
        ("tests/mysql/test_x.py", ["default", *KINDS]),
    ],
)
def test_a_test_of_all_databases_runs_where_it_may_break(module: str, left: list[str]) -> None:
    assert left_of(module, "default", *KINDS) == left


def test_a_test_that_runs_nowhere_else_runs_somewhere() -> None:
    assert left_of("tests/processes/test_x.py", "sqlite") == ["sqlite"]
    assert left_of("tests/models/test_x.py", "mysql", "mariadb") == ["mysql"]


def test_the_parameters_of_a_test_are_kept() -> None:
    left = thinned(f"{NAMES[0]}[{number}-{each}]" for number in range(50) for each in KINDS)
    assert left == {f"{NAMES[0]}[{number}-postgres]" for number in range(50)}


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
