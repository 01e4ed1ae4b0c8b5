"""The option that writes the files."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-sql", action="store_true", help="write the golden SQL files instead of comparing"
    )
