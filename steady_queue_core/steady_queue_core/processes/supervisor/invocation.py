"""How this process was started, to start the same again with the code that is there by then."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

#: Prefix of the environment variables that a process passes to the one that takes its place.
PASSED_ON = "STEADY_QUEUE_LIVE_RESTART_"


@dataclass(frozen=True)
class Invocation:
    """A command line with its environment and its folder."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str

    @classmethod
    def current(cls) -> Invocation | None:
        """Return that of this process, or ``None`` if it cannot be known."""
        if not sys.executable or len(sys.orig_argv) < 2:
            return None
        return cls((sys.executable, *sys.orig_argv[1:]), _first_environment(), _folder())

    def execute(self, **passed_on: str) -> NoReturn:
        """Replace this process; ``passed_on``: values of ``PASSED_ON`` variables. Raises
        ``OSError``."""
        os.chdir(self.folder)
        os.execve(self.arguments[0], self.arguments, self.environment_with(**passed_on))

    def environment_with(self, **passed_on: str) -> dict[str, str]:
        """Return the environment with these values of ``PASSED_ON`` variables."""
        names = {PASSED_ON + name.upper(): value for name, value in passed_on.items()}
        return {**self.environment, **names}


def _first_environment() -> dict[str, str]:
    """Return the environment that this process was started with, before its settings module or a
    file of variables changed it: they will do so again."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        entries = []
    pairs = [entry.partition(b"=") for entry in entries]
    # A program that has changed its title may have written it over its environment.
    intact = bool(pairs) and all(name and equals for name, equals, _ in pairs)
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    known = found if intact else dict(os.environ)
    return {name: value for name, value in known.items() if not name.startswith(PASSED_ON)}


def _folder() -> str:
    """Return the working directory, by the name that it was entered by: a link that a deployment
    has turned to a new version by the next start."""
    present, entered = os.getcwd(), os.environ.get("PWD", "")
    try:
        return entered if os.path.samefile(present, entered) else present
    except OSError:
        return present
