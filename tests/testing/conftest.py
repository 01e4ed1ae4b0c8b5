"""What the tests of the kit share."""

from __future__ import annotations

import pytest

from .samples import DONE


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


from ..core.conftest import recorders  # noqa: E402, F401
