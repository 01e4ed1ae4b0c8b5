"""What a merge needs of tests that there are for several databases, by what may break there.

What the dialects promise runs on each database. What is built on them, of models and queries
alone, runs on SQLite and PostgreSQL, and where it is about locks on MySQL too, which has other
ones. What is built on those again (pages, findings, commands), and tests of processes, which take
long, run on PostgreSQL alone, and on SQLite where there is none. What a million jobs cost, and
tests that are marked ``thorough``, are left to the whole run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable

from .servers.kinds import KINDS

#: Folders in which the databases themselves are tested.
OF_DATABASES = {
    "conformance", "databases", "dialects", "golden_sql", "mysql", "postgres", "servers",
}  # fmt: skip
#: Folders whose tests run on one database.
ON_ONE = {"admin", "command_line", "doctor", "faults", "overview", "processes"}
#: Folders whose tests a merge does without.
LEFT_OUT = {"million"}
#: Names of modules whose tests wait for each other's locks.
LOCKS = re.compile(r"/test_\w*(?:races|deadlocks|locked|unique_jobs)")
SQLITE = ("default", "sqlite")
DATABASE = re.compile(rf"(?<=[\[-])({'|'.join([*SQLITE, *KINDS])})(?=[\]-])")


def thinned(nodeids: Iterable[str], missing: Container[str] = ()) -> set[str]:
    """Return the tests that are left, where these databases are missing."""
    variants: dict[str, dict[str, str]] = defaultdict(dict)
    for nodeid in nodeids:
        if _folder(nodeid) in LEFT_OUT:
            continue
        database = DATABASE.search(nodeid)
        named = database[0] if database and _folder(nodeid) not in OF_DATABASES else ""
        variants[DATABASE.sub("*", nodeid) if named else nodeid][named] = nodeid
    return {
        each[name]
        for test, each in variants.items()
        for name in _needed(test, [name for name in each if name not in missing] or [*each])
    }


def _needed(test: str, there: list[str]) -> list[str]:
    if _folder(test) in ON_ONE:
        wanted = {"postgres"}
    else:
        wanted = {"", *SQLITE, "postgres", *(["mysql"] if LOCKS.search(test) else [])}
    last = sorted(there, key=lambda name: (name in SQLITE, name))[-1:]
    return [name for name in there if name in wanted] or last


def _folder(nodeid: str) -> str:
    return nodeid.removeprefix("tests/").partition("/")[0]
