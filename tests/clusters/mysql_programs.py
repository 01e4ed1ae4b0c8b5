"""MySQL's server, installed or unpacked by a starter."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.servers.mysql import MySQL, StartedMySQL
from tests.servers.programs import NotFound, account_for

LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
LOADER = "ld-linux-x86-64.so.2"


class MySQLPrograms:
    """The command that runs ``mysqld``.

    A starter that takes ``path`` says by it where it has unpacked the packages of the server, which
    is run with the C library among them.
    """

    def __init__(self, found: MySQL | StartedMySQL) -> None:
        self.account = account_for("mysql")
        self._root: Path | None = None
        if isinstance(found, MySQL):
            self._server: list[str | Path] = [found.server]
            return
        self._root = _unpacked(found.starter)
        libraries = self._root / LIBRARIES
        self._server = [
            *(libraries / LOADER, "--library-path", f"{libraries}:{libraries / 'mysql'}"),
            self._root / "usr/sbin/mysqld",
        ]

    def server(self, defaults: Path | None) -> list[str | Path]:
        """Return the command that runs the server with a file of options, or with none."""
        choice = f"--defaults-file={defaults}" if defaults else "--no-defaults"
        return [*self._server, choice, *self._places()]

    def _places(self) -> list[str]:
        if self._root is None:
            return []
        share = self._root / "usr/share/mysql"
        return [
            *(f"--basedir={self._root / 'usr'}", f"--lc-messages-dir={share}"),
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={self._root / 'usr/lib/mysql/plugin'}",
            "--secure-file-priv=NULL",
        ]


def _unpacked(starter: Path) -> Path:
    done = subprocess.run([starter, "path"], capture_output=True, text=True, check=False)
    root = Path(done.stdout.strip() or "/nowhere")
    if not (root / LIBRARIES / LOADER).exists():
        raise NotFound(f"{starter} does not say by `path` where it has unpacked MySQL")
    return root
