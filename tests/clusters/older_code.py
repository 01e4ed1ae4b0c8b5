"""The code of before the last migrations, from the repository's history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests import documents
from tests.servers.programs import NotFound

PACKAGES = (
    "steady_queue_core",
    "steady_queue_postgres",
    "steady_queue_mysql",
    "steady_queue_sqlite",
)
MIGRATIONS = "steady_queue_core/steady_queue_core/migrations"
#: How many migrations the older code does not know.
BEHIND = 5


class OlderCode:
    """The packages as they were ``BEHIND`` migrations ago, unpacked into a folder."""

    def __init__(self, folder: Path) -> None:
        migrations = sorted((documents.WORKSPACE / MIGRATIONS).glob("[0-9]*.py"))
        #: The first migration that it does not know.
        self.missing = migrations[-BEHIND].stem
        revision = _git("log", "--diff-filter=A", "--format=%H", "--", f"*/{self.missing}.py")
        if not revision:
            raise NotFound("the history of the repository is not there: fetch all of it")
        self._folder = folder
        folder.mkdir(parents=True)
        archive = folder / "packages.tar"
        _git("archive", f"--output={archive}", f"{revision.split()[-1]}^", *PACKAGES)
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What makes Python import it instead of what is installed."""
        places = [str(self._folder / each) for each in PACKAGES]
        return {"PYTHONPATH": os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")])}


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=documents.WORKSPACE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotFound(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
