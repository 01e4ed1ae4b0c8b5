"""The queue of a test, in the database that it names."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core.overview import closer, registered

from ..admin.places import tasks_in
from .planting import Garden


@pytest.fixture
def garden(
    request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Garden:
    """A queue that is well, in the database ``using``, or the default one."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    using = parameters.get("using", "default")
    settings.TASKS = tasks_in(using)
    monkeypatch.setattr(registered.Moment, "minute", Garden.minute)
    closer.forget()
    return Garden(using)
