"""The doctor examines a project: here, one without the tasks of other tests."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def silenced(settings: Any) -> None:
    """Other modules of the suite have tasks with fair keys, in queues that are not fair."""
    settings.SILENCED_SYSTEM_CHECKS = [*settings.SILENCED_SYSTEM_CHECKS, "steady_queue.W018"]
