"""What a supervisor says at its start."""

from __future__ import annotations

import pytest

from steady_queue_core.dialects import API_VERSION, DialectInfo
from steady_queue_core.processes.supervisor.topology import banner_lines


@pytest.mark.parametrize("wakes", [True, False])
def test_it_says_that_nothing_wakes_idle_workers(wakes: bool) -> None:
    dialect = DialectInfo(
        name="some", display_name="Some 1.0", api_version=API_VERSION, has_wakeup=wakes
    )
    told = "\n".join(banner_lines("default", dialect, [], []))
    assert ("idle workers poll" in told) is not wakes
