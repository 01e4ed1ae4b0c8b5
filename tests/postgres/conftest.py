"""Conformance in other circumstances: a run for a merge needs the cases that these matter to."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        matters_to = getattr(getattr(item, "cls", None), "matters_to", None)
        if matters_to and not any(hasattr(cases, item.name) for cases in matters_to):
            item.add_marker(pytest.mark.thorough)
