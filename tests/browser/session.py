"""The browser tests of one session of pytest: skipped where no browser is, which is said."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import django
import pytest

from ..servers.session import MATRIX
from . import chromium

HERE = "tests/browser/"
#: Where a worker of pytest-xdist leaves how many there are.
COUNTED = "steady_queue_browser_tests"


class BrowserSession:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self.missing, self._tests = chromium.missing(), 0

    def pytest_report_header(self) -> str:
        return f"Browser: {self.missing or chromium.tools()}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        ours = [item for item in session.items if item.nodeid.startswith(HERE)]
        self._tests = len(ours)
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[COUNTED] = self._tests
        for item in ours if self.missing else ():
            item.add_marker(pytest.mark.skip(reason=self.missing))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has found; each one has collected all tests."""
        self._tests = getattr(node, "workeroutput", {}).get(COUNTED, self._tests)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        if not self._tests:
            return
        terminalreporter.section("browser")
        terminalreporter.line(self.report)
        # The workers of pytest-xdist get here as well.
        if (path := os.environ.get(MATRIX)) and not hasattr(config, "workerinput"):
            python = f"Python {platform.python_version()}, Django {django.get_version()}"
            with Path(path).open("a") as matrix:
                matrix.write(f"{python}: {self.report}\n")

    @property
    def report(self) -> str:
        """What the tests use, or why they do not run."""
        if self.missing:
            return f"the admin is NOT TESTED in a browser: {self.missing}"
        return f"the admin in a browser: {chromium.tools()}"
