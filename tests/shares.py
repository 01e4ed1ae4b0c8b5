"""Tests that need one pair of Python and Django, not each: several runs can share them.

``--share 1,2/5`` runs two fifths of them and leaves the others to ``--share 3,4,5/5``. They are
marked ``shared``, or are in folders of this list.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
#: Folders whose tests are shared; of some, those that run on each database.
FOLDERS = {
    "browser": "",
    "clusters": "",
    "million": "",
    "processes": "",
    "doctor": r"\[.*(default|sqlite|postgres|mysql|mariadb)",
    "servers": "",
    "overview": r"\[.*(default|postgres|mysql|mariadb)",
    "sharding": r"\[.*(postgres|mysql|mariadb)",
    "models": r"\[.*(default|postgres|mysql|mariadb)",
    "admin": r"\[.*(default|postgres|mysql|mariadb)",
}


class Shares:
    """The plugin that leaves tests to other runs."""

    def __init__(self, share: str) -> None:
        numbers, _, shares = share.partition("/")
        self.numbers, self.shares = {int(each) for each in numbers.split(",")}, int(shares)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what is shared, and not ours."""
        others = [item for item in items if _is_shared(item) and not self.has(item)]
        left = set(others)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=others)

    def has(self, item: pytest.Item) -> bool:
        """Say whether a test is in this share, the same in every run."""
        common = million_rows(item.nodeid) or item.nodeid
        return zlib.crc32(common.encode()) % self.shares + 1 in self.numbers


def million_rows(nodeid: str) -> str | None:
    """Return what tests of the same million rows have in common: one process builds these once."""
    if not nodeid.startswith("tests/million/"):
        return None
    database = nodeid.rstrip("]").rpartition("-")[2].rpartition("[")[2]
    return f"tests/million/{database}"


def _is_shared(item: pytest.Item) -> bool:
    if item.get_closest_marker("shared"):
        return True
    if not item.path.is_relative_to(HERE):
        return False
    folder = item.path.relative_to(HERE).parts[0]
    return folder in FOLDERS and bool(re.search(FOLDERS[folder], item.name))
