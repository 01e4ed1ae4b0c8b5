"""Running subcommands as users do: in this process, and in one of their own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core.management import call_command

from ..servers.kinds import KINDS

#: A test that has a database ``other`` beside the default one.
on_two_databases = pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            alias,
            marks=pytest.mark.django_db(databases=["default", alias], transaction=True),
            id=alias,
        )
        for alias in list(KINDS)[:1]
    ],
)


class Told(NamedTuple):
    """What a subcommand has printed, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """The one object on the standard output."""
        [line] = self.lines
        found = json.loads(line)
        assert found["schema"] == 1
        return found


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def invoke(*arguments: object, terminal: bool = False, **options: Any) -> Told:
    """Run ``manage.py steady_queue`` with these arguments in this process."""
    out, err = Screen(terminal=terminal), Screen(terminal=terminal)
    code = 0
    try:
        call_command("steady_queue", *map(str, arguments), stdout=out, stderr=err, **options)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    return Told(code, out.getvalue(), err.getvalue())


def environment(database: Path | str) -> dict[str, str]:
    """Return the environment of a process that uses the settings of the tests."""
    private = ("DJANGO_", "STEADY_QUEUE_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return clean | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "STEADY_QUEUE_TEST_DB": str(database),
    }


def run(folder: Path, environ: dict[str, str], *arguments: object, **options: Any) -> Told:
    """Run ``steady-queue`` with these arguments in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "steady_queue_core", *map(str, arguments)],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )
    return Told(result.returncode, result.stdout, result.stderr)
