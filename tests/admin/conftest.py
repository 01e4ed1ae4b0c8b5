"""The queue of a test, in the database that it names, and admin sites of other pages."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site
from django.urls import path

from steady_queue_core.admin import register

from .places import Scene, tasks_in

Show = Callable[[dict[Any, Any]], None]


@pytest.fixture(autouse=True)
def _without_sidebar(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Django shows beside each page takes a fifth of its time."""
    monkeypatch.setattr(AdminSite, "enable_nav_sidebar", False)


@pytest.fixture
def scene(request: pytest.FixtureRequest, settings: Any) -> Scene:
    """Jobs in the database ``using``, or the default one; the admin shows them."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    using = parameters.get("using", "default")
    settings.TASKS = tasks_in(using)
    return Scene(using)


@pytest.fixture
def show(settings: Any) -> Show:
    """Have the admin site ``narrowed`` consist of these pages, the others as they come."""

    def show(pages: dict[Any, Any]) -> None:
        site = AdminSite(name="narrowed")
        urls: Any = ModuleType("urls")
        register(site)
        for model, page in pages.items():
            site.unregister(model)
            site.register(model, page)
        urls.urlpatterns = [
            path("admin/", default_site.urls),
            path("narrowed/", site.urls),
        ]
        settings.ROOT_URLCONF = urls

    return show
