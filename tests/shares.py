"""What a run leaves to others, for the whole takes long.

Most tests need one pair of Python and Django, not each, so that several runs can share them:
``--share 1,2/5`` runs two fifths of them and leaves the others to ``--share 3,4,5/5``.

With ``--thin``, what builds on the dialects runs on SQLite and one server, which the name of a test
decides, instead of three. Tests of the dialects themselves run on all. Tests that are marked
``thorough`` are left out.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from .servers.kinds import KINDS

HERE = Path(__file__).resolve().parent
#: Folders and modules whose tests run with each pair, unless they are marked ``shared``: what
#: depends most on Python, Django and the drivers.
EACH_PAIR = {
    "conformance", "contrib", "core", "dialects", "mysql", "postgres", "testing",
    "test_cli.py", "test_stock_project.py", "test_versions.py",
}  # fmt: skip
#: Folders in which the databases themselves are tested.
OF_DATABASES = {
    "conformance", "databases", "dialects", "golden_sql", "mysql", "postgres", "servers",
}  # fmt: skip
SERVER = re.compile(rf"(?<=[\[-])({'|'.join(KINDS)})(?=[\]-])")


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
            servers = servers_of(item.nodeid for item in items)
            chosen = [
                item
                for item in items
                if is_on_its_server(item.nodeid, servers)
                and not item.get_closest_marker("thorough")
            ]
        chosen = [item for item in chosen if not _is_shared(item) or self.has(item.nodeid)]
        ours = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in ours])
        items[:] = chosen

    def has(self, nodeid: str) -> bool:
        """Say whether a shared test is ours, the same in every run."""
        common = million_rows(nodeid) or nodeid
        return zlib.crc32(common.encode()) % self.shares + 1 in self.numbers


def million_rows(nodeid: str) -> str | None:
    """Return what tests of the same million rows have in common: one process builds these once."""
    if not nodeid.startswith("tests/million/"):
        return None
    database = nodeid.rstrip("]").rpartition("-")[2].rpartition("[")[2]
    return f"tests/million/{database}"


def servers_of(nodeids: Iterable[str]) -> dict[str, list[str]]:
    """Return the servers on which tests run, by what remains of their names without these."""
    found: dict[str, set[str]] = defaultdict(set)
    for nodeid in nodeids:
        if server := SERVER.search(nodeid):
            found[SERVER.sub("*", nodeid)].add(server[1])
    return {name: sorted(servers) for name, servers in found.items()}


def is_on_its_server(nodeid: str, servers: Mapping[str, Sequence[str]]) -> bool:
    """Say whether a test runs on no server, on its own, or is one of a database itself."""
    server = SERVER.search(nodeid)
    if server is None or nodeid.removeprefix("tests/").partition("/")[0] in OF_DATABASES:
        return True
    name = SERVER.sub("*", nodeid)
    chosen = servers[name]
    return server[1] == chosen[zlib.crc32(name.encode()) % len(chosen)]


def _is_shared(item: pytest.Item) -> bool:
    if item.get_closest_marker("shared"):
        return True
    if not item.path.is_relative_to(HERE):
        return False
    return item.path.relative_to(HERE).parts[0] not in EACH_PAIR
