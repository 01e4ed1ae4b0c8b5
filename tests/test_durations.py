"""Short tests come first, and the longest of the others."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from .durations import Durations


@pytest.fixture
def durations() -> Durations:
    config = mock.Mock(spec=["getoption"])
    config.getoption.return_value = False
    found = Durations(config)
    found.seen = {"tests/a.py": (2, 1.0), "tests/b.py": (1, 30.0), "tests/c.py": (10, 60.0)}
    return found


def item(nodeid: str) -> Any:
    return mock.Mock(spec=["nodeid"], nodeid=nodeid)


def test_the_longest_begin_first_once_the_short_ones_are_done(durations: Durations) -> None:
    items = [item(f"tests/{name}.py::test_x[{each}]") for each in "12" for name in "abcd"]
    durations.pytest_collection_modifyitems(items)
    assert [each.nodeid[6] for each in items] == ["d", "d", "a", "a", "b", "b", "c", "c"]


def test_it_is_told_how_long_all_that_takes(durations: Durations) -> None:
    few = ["tests/a.py::test_1", "tests/c.py::test_1"]
    assert durations.report(few, 1) == (
        "2 tests in 2 groups, the short ones first: about 6 s here with 1 at once"
    )
    many = [f"tests/c.py::test_{number}" for number in range(100)]
    # One group is for one worker.
    assert "about 10 minutes here with 2 at once" in durations.report(many, 2)


def test_what_was_seen_is_kept_and_goes_before_the_file(durations: Durations) -> None:
    report: Any = mock.Mock(nodeid="tests/b.py::test_x", when="call", skipped=False, duration=2.0)
    durations.pytest_runtest_logreport(report)
    kept: dict[str, Any] = {"tests/z.py": [1, 1.0]}
    durations.cache = mock.Mock()
    durations.cache.get.return_value = kept
    durations.pytest_sessionfinish()
    [(_, stored)] = [call.args for call in durations.cache.set.call_args_list]
    assert stored == {"tests/z.py": [1, 1.0], "tests/b.py": (1, 2.0)}
