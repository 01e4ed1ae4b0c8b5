"""Projects with real processes, as other tests make them, and one without the tasks of others."""

from __future__ import annotations

from typing import Any

import pytest

from ..processes.conftest import make_project, server_templates, template

__all__ = ["make_project", "server_templates", "template"]


@pytest.fixture(autouse=True)
def silenced(settings: Any) -> None:
    """Other modules of the suite have tasks with fair keys, in queues that are not fair."""
    settings.SILENCED_SYSTEM_CHECKS = [*settings.SILENCED_SYSTEM_CHECKS, "steady_queue.W018"]
