"""Adds the alias ``postgres``, where a server is configured."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connections

from .servers import ALIAS, VARIABLE, configured, url

if address := url():
    connections.settings[ALIAS] = configured(address)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if url() is not None:
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"no PostgreSQL: {VARIABLE} is not set"))
