"""The code of before a migration, from the repository's history."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .documents import WORKSPACE
from .servers.programs import NotFound

#: The first migration that no release has. A release sets it to the one after its last migration.
FIRST_UNRELEASED = "0002_cancel_permission"
PACKAGES = (
    "steady_queue_core",
    "steady_queue_postgres",
    "steady_queue_mysql",
    "steady_queue_sqlite",
)


class OlderCode:
    """The packages and their tests from before ``missing``, a migration, in a folder.

    Raises ``NotFound`` in a source archive, or a clone that is not complete. No commit is that of a
    release: they have no tags, and go on within one version. The last one that knows no other
    schema than the release's stands for it.
    """

    def __init__(self, folder: Path, missing: str = FIRST_UNRELEASED) -> None:
        added = f"*/migrations/{missing}.py"
        commits = _git("log", "--diff-filter=A", "--format=%H", "--", added).split()
        if not commits:
            raise NotFound(f"no commit has added {missing}: fetch the whole history")
        folder.mkdir(parents=True)
        archive = folder / "older.tar"
        _git("archive", f"--output={archive}", f"{commits[-1]}^", *PACKAGES, "tests")
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
        self.folder = folder
        #: What makes Python import them instead of what is installed.
        self.packages = [str(folder / each) for each in PACKAGES]


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=WORKSPACE, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise NotFound(str(error)) from error
    if done.returncode:
        raise NotFound(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
