"""The queue of a test, in the database that it names."""

from __future__ import annotations

from typing import Any

import pytest

from .places import Scene, tasks_in


@pytest.fixture
def scene(request: pytest.FixtureRequest, settings: Any) -> Scene:
    """Jobs in the database ``using``, or the default one; the admin shows them."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    using = parameters.get("using", "default")
    settings.TASKS = tasks_in(using)
    return Scene(using)
