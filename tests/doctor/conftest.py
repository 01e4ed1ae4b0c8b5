"""Projects with real processes, as other tests make them, and one without the tasks of others."""

from __future__ import annotations

from typing import Any

import pytest

from ..processes.conftest import make_project, server_templates, template

__all__ = ["make_project", "server_templates", "template"]


#: What the checks have to say of the tasks of other modules of the suite.
OF_TASKS = [f"steady_queue.W{number:03}" for number in (9, 11, 12, 15, 16, 17, 18)]


@pytest.fixture(autouse=True)
def silenced(settings: Any) -> None:
    """Hear of nobody else's tasks."""
    settings.SILENCED_SYSTEM_CHECKS = [*settings.SILENCED_SYSTEM_CHECKS, *OF_TASKS]
