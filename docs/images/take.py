"""Takes the pictures of the dashboard, of a demo that runs: ``make pictures``.

Needs Playwright, and Chromium: that of the variable CHROMIUM, or of PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).resolve().parent
#: Seconds after which enough has happened for each section.
PATIENCE = 150
WIDTH, HEIGHT, SCALE = 1100, 900, 1.5
#: The picture ends below this section.
LAST = '[data-part="queues"]'
CLOSED_SIDEBAR = "localStorage.setItem('django.admin.navSidebarIsOpen', 'false')"
LINK = re.compile(r"http://127\.0\.0\.1:\d+/login/\S+")


def main() -> None:
    """Take a picture in each colour scheme."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with demo() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE
        )
        page.add_init_script(CLOSED_SIDEBAR)
        page.goto(link)
        time.sleep(PATIENCE)
        for scheme in ("light", "dark"):
            take(page, scheme)
        browser.close()


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo; yield its link."""
    command = [sys.executable, "-m", "steady_queue_core", "demo", "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        links = (found[0] for line in process.stdout if (found := LINK.search(line)))
        yield next(links)
    finally:
        process.terminate()
        process.wait()


def take(page: Page, scheme: str) -> None:
    """Take a picture of the upper part of the page."""
    page.emulate_media(color_scheme=scheme)
    page.reload()
    section = page.locator(LAST).bounding_box()
    assert section is not None
    size = {"width": WIDTH, "height": section["y"] + section["height"] + 16}
    path = FOLDER / f"overview-{scheme}.png"
    page.screenshot(path=path, clip={"x": 0, "y": 0, **size}, full_page=True)
    print(f"{path}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
