"""How pytest-xdist divides the tests among its workers (``pytest -n 2``): scope by scope, in the
order that ``durations`` gives them."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from .scopes import scope_of


class Streams:
    """A plugin of pytest, for its controlling process and the workers."""

    def pytest_configure(self, config: pytest.Config) -> None:
        # The workers have put their tests into order.
        config.option.loadscopereorder = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduler:
        return Scheduler(config, log)


class Scheduler(LoadScopeScheduling):
    """Gives each worker whole scopes, as ``scope_of`` draws them."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
