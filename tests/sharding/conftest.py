"""Fixtures for tests of shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .places import Shards, shards_of


@pytest.fixture
def shards(west: str, settings: Any, tmp_path: Path, django_db_blocker: Any) -> Iterator[Shards]:
    """Two shards: ``east`` in the default database, ``west`` in the one that the test names."""
    # Django lets a test use no alias that is not there from the beginning.
    with django_db_blocker.unblock(), shards_of(settings, west, tmp_path) as found:
        yield found
