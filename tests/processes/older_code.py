"""The code with the schema of the last release, from the repository's history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..core.test_schema_changes import FIRST_UNRELEASED
from .harness import WORKSPACE, Project

PACKAGES = (
    "steady_queue_core",
    "steady_queue_postgres",
    "steady_queue_mysql",
    "steady_queue_sqlite",
)


class NoHistory(Exception):
    """The commit cannot be had: a source archive, or a clone that is not complete."""


class OlderCode:
    """The packages and their tests before the first migration that is not released, in a folder.

    No commit is that of a release: they have no tags, and go on within one version. The last one
    that knows no other schema than the release's stands for it.
    """

    def __init__(self, folder: Path) -> None:
        added = f"*/migrations/{FIRST_UNRELEASED}.py"
        commits = _git("log", "--diff-filter=A", "--format=%H", "--", added).split()
        if not commits:
            raise NoHistory(f"no commit has added {FIRST_UNRELEASED}: fetch the whole history")
        folder.mkdir(parents=True)
        archive = folder / "older.tar"
        _git("archive", f"--output={archive}", f"{commits[-1]}^", *PACKAGES, "tests")
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
        self.paths = [str(folder), *(str(folder / each) for each in PACKAGES)]


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=WORKSPACE, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise NoHistory(str(error)) from error
    if done.returncode:
        raise NoHistory(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


class UpgradedProject(Project):
    """A project whose processes start with the older code until it is taken away."""

    code: OlderCode | None = None

    def environment(self) -> dict[str, str]:
        found = super().environment()
        if self.code is not None:
            found["PYTHONPATH"] = os.pathsep.join([*self.code.paths, found["PYTHONPATH"]])
        return found
