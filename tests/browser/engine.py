"""Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from . import chromium

Result = TypeVar("Result")
#: Seconds until a browser that does not do what a test waits for has failed it.
PATIENCE = 20


class Engine:
    """A browser with a thread of its own.

    Playwright keeps an event loop in the thread that uses it, where Django refuses the database.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._playwright, self._browser = self.do(self._start)

    def do(self, what: Callable[..., Result], *given: Any) -> Result:
        """Call something in the thread, and return what it returns."""
        return self._thread.submit(what, *given).result()

    def new_context(self, **options: Any) -> Any:
        """Return what a user's windows have in common: cookies, storage and preferences."""
        context = self.do(lambda: self._browser.new_context(**options))
        self.do(context.set_default_timeout, PATIENCE * 1000)
        return context

    def close(self) -> None:
        self.do(self._browser.close)
        self.do(self._playwright.stop)
        self._thread.shutdown()

    @staticmethod
    def _start() -> tuple[Any, Any]:
        from playwright.sync_api import sync_playwright

        playwright = sync_playwright().start()
        return playwright, playwright.chromium.launch(executable_path=chromium.program())
