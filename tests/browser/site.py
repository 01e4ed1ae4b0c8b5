"""A server with the admin, as browsers see it."""

from __future__ import annotations

from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.test import override_settings
from django.test.testcases import LiveServerThread

from .engine import PATIENCE

SETTINGS: dict[str, Any] = {"ALLOWED_HOSTS": ["localhost"], "MEDIA_URL": "media/"}
POLICY = "tests.browser.policy.StrictPolicy"


class Site:
    """A live server in a thread, with the strict policy."""

    def __init__(self, middleware: list[str], tasks: dict[str, Any]) -> None:
        self._settings = override_settings(
            **SETTINGS, MIDDLEWARE=[POLICY, *middleware], TASKS=tasks
        )
        self._settings.enable()
        self._server = LiveServerThread("localhost", StaticFilesHandler, port=0)
        self._server.daemon = True
        self._server.start()
        assert self._server.is_ready.wait(PATIENCE), "the server has not started"
        if self._server.error:
            raise self._server.error

    @property
    def origin(self) -> str:
        return f"http://localhost:{self._server.port}"

    def close(self) -> None:
        self._server.terminate()
        self._settings.disable()
