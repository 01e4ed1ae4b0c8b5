"""What a run for a merge needs of tests that there are for several databases.

What builds on the dialects runs on SQLite and one server, which the name of a test decides, instead
of three; tests of processes and of a million jobs, which take long, on one of the four databases.
Tests of the dialects themselves run on all. Tests that are marked ``thorough`` are left out.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable

from .servers.kinds import KINDS

#: Folders in which the databases themselves are tested.
OF_DATABASES = {
    "conformance", "databases", "dialects", "golden_sql", "mysql", "postgres", "servers",
}  # fmt: skip
#: Folders where SQLite is one of the databases to choose from.
LONG = {"million", "processes"}
SQLITE = ("default", "sqlite")


def thinned(nodeids: Iterable[str]) -> set[str]:
    """Return the tests that are left."""
    variants: dict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(nodeids):  # Each run has them in another order.
        variants[_without_database(nodeid)].append(nodeid)
    return {each[zlib.crc32(name.encode()) % len(each)] for name, each in variants.items()}


def _without_database(nodeid: str) -> str:
    folder = nodeid.removeprefix("tests/").partition("/")[0]
    if folder in OF_DATABASES:
        return nodeid
    names = [*KINDS, *(SQLITE if folder in LONG else ())]
    return re.sub(rf"(?<=[\[-])({'|'.join(names)})(?=[\]-])", "*", nodeid)
