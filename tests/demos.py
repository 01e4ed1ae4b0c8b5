"""A demo in a process of its own, and what it leaves."""

from __future__ import annotations

import http.cookiejar
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

#: Runs the command line after the statements that each test puts before it.
MAIN = "import sys; from steady_queue_core.cli import main; sys.exit(main(sys.argv[1:]))"

LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/login/(\S+)/")


def start(
    folder: Path,
    *arguments: str,
    before: str = "",
    program: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> subprocess.Popen[str]:
    """Start a demo whose project is in ``folder``, by a ``program`` or the code of the suite."""
    private = ("DJANGO_", "STEADY_QUEUE_", *(["PYTHON"] if program else []))
    environ = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*(program or (sys.executable, "-c", f"{before}\n{MAIN}")), "demo", *arguments],
        cwd=folder,
        env=environ | {"TMPDIR": str(folder), **environment},
        text=True,
        **(streams | options),
    )


def projects(folder: Path) -> list[Path]:
    """Return the folders of projects in ``folder``."""
    return list(folder.glob("steady-queue-demo-*"))


def processes_in(folder: Path) -> dict[int, str]:
    """Return the command lines of the processes that work in a project of ``folder``, by pid."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(str(folder / "steady-queue-demo-")):
                found[int(process.name)] = (process / "cmdline").read_text()
        except OSError:
            continue
    return found


@dataclass
class Answer:
    """What a browser shows."""

    status: int
    url: str
    text: str


class Browser:
    """Keeps cookies, and follows redirects."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(self.cookies),
        )

    def get(self, page: str, *, host: str = "", method: str = "GET") -> Answer:
        url = page if page.startswith("http") else f"{self.site}/{page}"
        request = urllib.request.Request(url, method=method)
        if host:
            request.add_header("Host", host)
        try:
            with self._opener.open(request, timeout=30) as answer:
                return Answer(answer.status, answer.url, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.url or "", error.read().decode())


class Served:
    """A demo that has printed its link."""

    def __init__(self, process: subprocess.Popen[str], output: IO[str]) -> None:
        self.process = process
        found = None
        while found is None:
            line = output.readline()
            assert line, "the demo ended early"
            found = LINK.search(line)
        self.link, self.port, self.token = found[0], int(found[1]), found[2]

    def browser(self) -> Browser:
        return Browser(f"http://127.0.0.1:{self.port}")

    def is_reachable(self, address: str = "127.0.0.1") -> bool:
        try:
            socket.create_connection((address, self.port), timeout=5).close()
        except OSError:
            return False
        return True


def serve(folder: Path, *arguments: str, program: Sequence[str] = ()) -> Served:
    """Start a demo with ``--serve``, and wait for its link."""
    process = start(folder, "--serve", *arguments, program=program)
    assert process.stdout is not None
    return Served(process, process.stdout)
