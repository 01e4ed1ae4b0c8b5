"""What the tests of the kit share."""

from __future__ import annotations

import pytest

from ..core.conftest import _registry, connect, recorders  # noqa: F401  (fixtures)
from .samples import DONE


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()
