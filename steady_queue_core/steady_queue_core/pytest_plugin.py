"""The pytest plugin: the fixture and the mark ``steady_queue``. See ``docs/testing.md``.

pytest loads it in every project of the environment, so it imports Django only when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testing.fixture import TaskQueueFixture

MARK = "steady_queue"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers",
        f'{MARK}(kind, **options): run with the backend "immediate" or "dummy" of '
        "steady_queue_core.testing in the place of SteadyQueueBackend",
    )


@pytest.fixture(autouse=True)
def _steady_queue_backend(request: pytest.FixtureRequest) -> Iterator[None]:
    """Install the backend that the mark names."""
    mark = request.node.get_closest_marker(MARK)
    if mark is None:
        yield
        return
    from .testing import override_backends

    with override_backends(*mark.args, **mark.kwargs):
        yield


@pytest.fixture
def steady_queue(_steady_queue_backend: None) -> TaskQueueFixture:
    """Run and inspect the tasks that the test enqueues."""
    from .testing.fixture import TaskQueueFixture

    return TaskQueueFixture()
