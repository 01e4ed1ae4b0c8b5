"""How much a test does: a run for a merge needs less than the whole run (see ``thinning``).

``STEADY_QUEUE_TEST_RUNS=200``, as in ``make soak``, has what is repeated done that often.
"""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

#: How often somebody wants things repeated; 0: as often as usual.
ASKED = int(os.environ.get("STEADY_QUEUE_TEST_RUNS", "0"))

T = TypeVar("T")


def sized(config: pytest.Config, *, merge: T, whole: T) -> T:
    """Return what is enough for the run."""
    return merge if config.getoption("--thin") else whole


def runs(config: pytest.Config, *, merge: int, whole: int) -> int:
    """Return how often something is to be repeated."""
    return ASKED or sized(config, merge=merge, whole=whole)
