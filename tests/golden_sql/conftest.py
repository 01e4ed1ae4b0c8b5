"""The option that writes the files."""

from __future__ import annotations

import pytest

from steady_queue_postgres import wakeup


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-sql", action="store_true", help="write the golden SQL files instead of comparing"
    )


@pytest.fixture(autouse=True)
def _every_enqueue_notifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an enqueue brings its notification along does not depend on the moment."""
    monkeypatch.setattr(wakeup, "PAUSE", 0.0)
