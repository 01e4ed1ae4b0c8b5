"""How pytest-xdist divides the tests among its workers (``pytest -n 2``): scope by scope, in the
order that ``durations`` gives them, but so that tests that compute run beside tests that wait."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from .scopes import scope_of, waits


class Streams:
    """A plugin of pytest, for its controlling process and the workers."""

    def pytest_configure(self, config: pytest.Config) -> None:
        # The workers have put their tests into order.
        config.option.loadscopereorder = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduler:
        return Scheduler(config, log)


class Scheduler(LoadScopeScheduling):
    """Gives each worker whole scopes, as ``scope_of`` draws them. Every other worker begins with
    what waits for most of its time, and the others with what computes; at last they help each
    other."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        begins_with_waiting = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        first = next((each for each in self.workqueue if waits(each) is begins_with_waiting), None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
