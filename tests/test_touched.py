"""A change runs the tests that are nearest to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import touched

CORE = "steady_queue_core/steady_queue_core"


@pytest.mark.parametrize(
    ("changed", "near"),
    [
        (f"{CORE}/features/expiry/options.py", "tests/models/test_expiry.py"),
        (f"{CORE}/schedules/cron.py", "tests/core/test_cron.py"),
        (f"{CORE}/dialects/portable/claim.py", "tests/conformance/test_sqlite.py"),
        (f"{CORE}/doctor/__init__.py", "tests/doctor/test_projects.py"),
        (f"{CORE}/templates/steady_queue/overview.html", "tests/admin/test_pages.py"),
        ("steady_queue_mysql/steady_queue_mysql/claim_sql.py", "tests/mysql/test_conformance.py"),
        ("docs/tasks.md", "tests/test_docs.py"),
        ("tests/servers/fleet.py", "tests/servers/test_desk.py"),
    ],
)
def test_tests_are_near_by_imports_names_or_places(changed: str, near: str) -> None:
    assert Path(touched.ROOT, near).exists()
    assert touched.distances([changed])[near] <= 2


def test_a_test_that_has_changed_is_the_nearest() -> None:
    found = touched.distances(["tests/core/test_cron.py", "README.md"])
    assert found["tests/core/test_cron.py"] == 0
    assert found["tests/test_docs.py"] == 1


def test_what_is_far_away_is_not_near() -> None:
    found = touched.distances([f"{CORE}/features/expiry/options.py"])
    assert found.get("tests/servers/test_address.py") is None
    assert found["tests/models/test_expiry.py"] < min(
        found[each] for each in found if each.startswith("tests/admin/")
    )


def test_nothing_that_is_no_test_is_chosen() -> None:
    found = touched.distances([f"{CORE}/models/job.py", "tests/processes/harness.py"])
    assert all(Path(path).name.startswith("test_") for path in found)
