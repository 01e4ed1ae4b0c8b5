"""Tests that need one pair of Python and Django, not each: several runs can share them.

They are marked ``shared``. ``--share 1/2`` leaves out those that ``--share 2/2`` has.
"""

from __future__ import annotations

import zlib

import pytest


class Shares:
    """The plugin that leaves tests to other runs."""

    def __init__(self, share: str) -> None:
        number, _, shares = share.partition("/")
        self.number, self.shares = int(number), int(shares)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what is marked, and not ours."""
        others = [
            item for item in items if item.get_closest_marker("shared") and not self.has(item)
        ]
        items[:] = [item for item in items if item not in set(others)]
        config.hook.pytest_deselected(items=others)

    def has(self, item: pytest.Item) -> bool:
        """Say whether a test is in this share, the same in every run."""
        return zlib.crc32(item.nodeid.encode()) % self.shares == self.number - 1
