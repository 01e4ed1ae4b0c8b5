"""The queue of a test, in the database that it names."""

from __future__ import annotations

from typing import Any

import pytest

from .planting import Garden, plant


@pytest.fixture
def garden(
    request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Garden:
    """A queue that is well, in the database ``using``, or the default one."""
    return plant(request, settings, monkeypatch)
