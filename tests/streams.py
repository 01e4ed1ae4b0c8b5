"""How pytest-xdist divides the tests among its workers (``pytest -n 4``).

Tests of one class or module stay in one worker, since they share fixtures. The longest begin
first, so that no worker is left alone with them at the end.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from .shares import million_rows

#: What the names of the longest begin with, the longest first.
LONG = (
    "tests/million/mysql",
    "tests/million/",
    "tests/conformance/test_mutants.py",
    "tests/models/test_machine.py",
    "tests/models/test_batch_machine.py",
    "tests/processes/test_silence.py",
    "tests/processes/test_scheduler.py",
    "tests/test_third_party_dialect.py",
    "tests/test_packaging.py",
)


class Streams:
    """A plugin of pytest, for its controlling process and the workers."""

    def pytest_configure(self, config: pytest.Config) -> None:
        # The workers have put their tests into order.
        config.option.loadscopereorder = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: _place(scope_of(item.nodeid)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduler:
        return Scheduler(config, log)


class Scheduler(LoadScopeScheduling):
    """Gives each worker whole scopes, as ``scope_of`` draws them."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return what the tests that stay in one worker have in common."""
    return million_rows(nodeid) or nodeid.partition("[")[0].rpartition("::")[0]


def _place(scope: str) -> int:
    places = (place for place, prefix in enumerate(LONG) if scope.startswith(prefix))
    return next(places, len(LONG))
