"""The option that writes the files."""

from __future__ import annotations

import pytest

from steady_queue_postgres import wakeup


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-sql", action="store_true", help="write the golden SQL files instead of comparing"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Write the files of MariaDB last: they say how it differs from what MySQL is sent."""
    if config.getoption("--write-sql"):
        items.sort(key=lambda item: "MariaDB" in item.nodeid)


@pytest.fixture(autouse=True)
def _every_enqueue_notifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an enqueue brings its notification along does not depend on the moment."""
    monkeypatch.setattr(wakeup, "PAUSE", 0.0)
