"""No modules import each other, not even lazily or for type checkers alone."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

pytestmark = pytest.mark.shared

DISTRIBUTIONS = (
    "steady_queue_core",
    "steady_queue_postgres",
    "steady_queue_mysql",
    "steady_queue_sqlite",
)


def test_no_import_is_circular() -> None:
    graph = grimp.build_graph(*DISTRIBUTIONS, cache_dir=None)
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail("These modules import each other: " + " <- ".join(error.args[1]))
