"""The browser of the system, and why there is none for the tests."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import version
from importlib.util import find_spec

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = {"playwright": "playwright", "axe_playwright_python": "axe-playwright-python"}


def program() -> str:
    """Return the path of the first of the programs that is there; an empty one without any."""
    return next(filter(None, map(shutil.which, PROGRAMS)), "")


def missing() -> str:
    """Return why no test can use a browser here; nothing if they can."""
    absent = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if absent:
        return f"no {' and '.join(absent)} in this environment ('make browser' installs them)"
    return "" if program() else f"none of {', '.join(PROGRAMS)} is in PATH"


def axe_script() -> str:
    """Return the program that checks whether pages are accessible."""
    from axe_playwright_python.base import AXE_SCRIPT

    return str(AXE_SCRIPT)


def tools() -> str:
    """Return what the tests use, with versions."""
    found = re.search(r"axe v([\d.]+)", axe_script()[:100])
    axe = found[1] if found else "of an unknown version"
    return f"{program()} by Playwright {version('playwright')}, with axe-core {axe}"
