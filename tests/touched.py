"""Which tests a change touches: ``pytest --touched SECONDS`` runs the nearest that fit in.

A change is what differs from the upstream branch, or else from the last commit. Near is a test
whose module imports what has changed, directly or through few others, or that is named like it, or
in a folder of its name. Tests of servers run where a change is in their dialect. With no change,
tests of the core and SQLite's conformance run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

from .durations import Durations
from .scopes import scope_of
from .servers.session import needs

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "steady_queue_core", "steady_queue_postgres", "steady_queue_mysql", "steady_queue_sqlite",
)  # fmt: skip
#: The servers of a dialect.
SERVERS = {"steady_queue_postgres": {"postgres"}, "steady_queue_mysql": {"mysql", "mariadb"}}
CORE = "steady_queue_core/steady_queue_core/"
#: Tests that no import leads to, by what the path of a change begins with.
BESIDE = {
    f"{CORE}dialects/": "tests/conformance/",
    f"{CORE}templates/": "tests/admin/",
    f"{CORE}static/": "tests/admin/",
    "steady_queue_sqlite/": "tests/conformance/test_sqlite.py",
    "steady_queue_postgres/": "tests/postgres/",
    "steady_queue_mysql/": "tests/mysql/",
    "docs/": "tests/test_docs.py",
    "README.md": "tests/test_docs.py",
    "benchmarks/": "tests/test_benchmarks.py",
    "examples/": "tests/test_deployment_examples.py",
}
WITHOUT_CHANGE = ("tests/core/", "tests/conformance/test_sqlite.py")


class Touched:
    """A plugin of pytest."""

    def __init__(self, seconds: float, durations: Durations) -> None:
        self.seconds, self.durations = seconds, durations
        self.changed = changed_files()
        self.distances = distances(self.changed)
        self._left_out = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        ours = {kind for path in self.changed for kind in SERVERS.get(path.split("/")[0], ())}
        near = [item for item in items if self._distance(item) is not None and needs(item) <= ours]
        chosen = set(self._fitting(near, workers=config.getoption("numprocesses") or 2))
        self._left_out = len(near) - len(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]

    def pytest_report_header(self) -> str:
        if not self.changed:
            return f"nothing has changed: {', '.join(WITHOUT_CHANGE)}, for {self.seconds:g} s"
        near = sum(distance < 2 for distance in self.distances.values())
        return (
            f"{len(self.changed)} changed files, {near} test modules beside them, "
            f"{len(self.distances)} that they may touch: the nearest, for {self.seconds:g} s"
        )

    def _distance(self, item: pytest.Item) -> int | None:
        path = item.nodeid.partition("::")[0]
        if not self.changed:
            return 0 if path.startswith(WITHOUT_CHANGE) else None
        return self.distances.get(path)

    def _fitting(self, items: list[pytest.Item], workers: int) -> Iterable[pytest.Item]:
        expected = self.durations.expected(item.nodeid for item in items)
        left = self.seconds * workers
        places = {scope_of(item.nodeid): self._distance(item) or 0 for item in items}
        chosen = set()
        for scope in sorted(places, key=lambda scope: (places[scope], expected[scope])):
            if expected[scope] <= left:
                left -= expected[scope]
                chosen.add(scope)
        return [item for item in items if scope_of(item.nodeid) in chosen]


def changed_files() -> list[str]:
    """Return the paths of the files that differ from the upstream branch or the last commit."""
    base = _git("rev-parse", "--verify", "--quiet", "@{upstream}") or ["HEAD"]
    listed = _git("diff", "--name-only", base[0]) + _git(
        "ls-files", "--others", "--exclude-standard"
    )
    return sorted(set(listed))


def distances(changed: Iterable[str]) -> dict[str, int]:
    """Return how far each test module is from what has changed, by its path."""
    found = {path: 0 for path in changed if _is_test(path)}
    modules = {_module(path) for path in changed if path.endswith(".py")}
    graph = grimp.build_graph(*PACKAGES, "tests", cache_dir=str(ROOT / ".import_linter_cache"))
    level, distance, seen = modules & graph.modules, 0, set(modules)
    while level:
        distance += 1
        importers = map(graph.find_modules_that_directly_import, level)
        level = set().union(*importers) - seen
        seen |= level
        for module in level:
            found.setdefault(f"{module.replace('.', '/')}.py", distance)
    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    for test in tests:
        if any(_is_beside(test, path) for path in changed):
            found[test] = min(found.get(test, 1), 1)
        elif any(Path(test).parent.name in Path(path).parts[2:-1] for path in changed):
            found[test] = min(found.get(test, 2), 2)
    return {path: distance for path, distance in found.items() if _is_test(path)}


def _is_beside(test: str, path: str) -> bool:
    """Say whether a test module belongs to a file by its place, or by its name: ``test_expiry`` to
    ``expiry.py``, or to what is in the folder ``expiry``."""
    if any(path.startswith(start) and test.startswith(BESIDE[start]) for start in BESIDE):
        return True
    file = Path(path)
    is_part = file.stem == "__init__" or file.parent.parent.name == "features"
    name = file.parent.name if is_part else file.stem
    return file.suffix == ".py" and Path(test).stem == f"test_{name}"


def _module(path: str) -> str:
    """Return the name of a module by its path."""
    parts = Path(path).with_suffix("").parts
    parts = parts[1:] if parts[0] in PACKAGES else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.split()
