"""A browser, a server with the admin, and somebody who may do everything there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission
from django.test import TransactionTestCase

from steady_queue_core.overview import busy

from ..admin.places import tasks_in
from ..admin.visitor import Visitor
from ..emptying import empty_databases
from .engine import Engine
from .site import Site
from .situation import OPTIONS, Situation
from .tab import Tab


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The browser."""
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def site(django_db_setup: None, django_db_blocker: Any) -> Iterator[Site]:
    """A server that all tests of a module use; what they store is gone after the last one."""
    tasks = tasks_in("default")
    tasks["default"]["OPTIONS"] |= OPTIONS
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(busy.Moment, "minute", Situation.minute)
        site = Site(django_settings.MIDDLEWARE, tasks)
        yield site
        site.close()
        empty_databases(_Case())


@pytest.fixture
def visitor(site: Site, transactional_db: None) -> Visitor:
    """A member of staff with all permissions of ours."""
    return chief()


@pytest.fixture
def situation(site: Site, transactional_db: None) -> Situation:
    """A queue with live processes, and without jobs."""
    return Situation("default")


@pytest.fixture(scope="module")
def scripted(engine: Engine, site: Site) -> Iterator[Tab]:
    with closing(Tab(engine, site.origin)) as tab:
        yield tab


@pytest.fixture(scope="module")
def unscripted(engine: Engine, site: Site) -> Iterator[Tab]:
    with closing(Tab(engine, site.origin, javascript=False)) as tab:
        yield tab


@pytest.fixture
def tab(scripted: Tab, visitor: Visitor) -> Tab:
    """A tab in which the visitor is logged in."""
    scripted.sign_in(visitor)
    return scripted


@pytest.fixture
def plain_tab(unscripted: Tab, visitor: Visitor) -> Tab:
    """One without JavaScript."""
    unscripted.sign_in(visitor)
    return unscripted


@pytest.fixture(params=["tab", pytest.param("plain_tab", marks=pytest.mark.thorough)])
def any_tab(request: pytest.FixtureRequest) -> Iterator[Tab]:
    """Each of them in turn, in which nothing may go wrong."""
    tab: Tab = request.getfixturevalue(request.param)
    yield tab
    assert not tab.take_troubles()


def chief() -> Visitor:
    """Return somebody who may do everything here, and nothing elsewhere."""
    ours = Permission.objects.filter(content_type__app_label="steady_queue")
    return Visitor(*ours.values_list("codename", flat=True))


class _Case(TransactionTestCase):
    """Names the databases that are emptied."""

    databases = {"default"}
