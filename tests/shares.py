"""What a run leaves to others, for the whole takes long.

Most tests need one pair of Python and Django, not each, so that several runs can share them:
``--share 1,2/5`` runs two fifths of them and leaves the others to ``--share 3,4,5/5``.

With ``--thin`` they leave out what a merge does not need (see ``thinning``).
"""

from __future__ import annotations

import zlib

import pytest

from .scopes import million_rows
from .servers.session import missing_servers
from .thinning import thinned

#: Folders and modules whose tests run with each pair, unless they are marked ``shared``: what
#: depends most on Python, Django and the drivers; and what does so much that a merge needs it.
EACH_PAIR = {
    "contrib", "core", "dialects", "mysql", "test_cli.py", "test_versions.py",
}  # fmt: skip
EACH_PAIR_OF_MERGE = EACH_PAIR - {"core", "dialects", "mysql"}
#: Modules whose tests share what takes long to set up: a browser, a demo at work.
ONE_SET_UP = ("tests/browser/", "tests/test_served_demo.py", "tests/test_packaging.py")


class Shares:
    """The plugin that leaves tests to other runs."""

    def __init__(self, share: str, *, is_thin: bool = False) -> None:
        numbers, _, shares = share.partition("/")
        self.numbers, self.shares = {int(each) for each in numbers.split(",")}, int(shares)
        self.is_thin = is_thin

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what is not ours."""
        chosen = items
        if self.is_thin:
            needed = thinned((item.nodeid for item in items), missing_servers(config))
            chosen = [item for item in items if item.nodeid in needed]
            chosen = [item for item in chosen if not item.get_closest_marker("thorough")]
        each_pair = EACH_PAIR_OF_MERGE if self.is_thin else EACH_PAIR
        chosen = [
            item for item in chosen if not _is_shared(item, each_pair) or self.has(item.nodeid)
        ]
        ours = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in ours])
        items[:] = chosen

    def has(self, nodeid: str) -> bool:
        """Say whether a shared test is ours, the same in every run."""
        common = million_rows(nodeid) or nodeid
        if nodeid.startswith(ONE_SET_UP):
            common = nodeid.partition("::")[0]
        return zlib.crc32(common.encode()) % self.shares + 1 in self.numbers


def _is_shared(item: pytest.Item, each_pair: set[str]) -> bool:
    if item.get_closest_marker("shared"):
        return True
    folder, _, rest = item.nodeid.partition("/")
    return folder == "tests" and rest.partition("/")[0].partition("::")[0] not in each_pair
