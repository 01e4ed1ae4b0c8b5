"""Finding programs that are installed, and an account to run a server under."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable
from glob import glob
from pathlib import Path
from typing import Any

#: Where the package managers put servers, apart from PATH.
FOLDERS = (
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
)


class NotFound(Exception):
    """No server of a kind can be started; the text says why."""


def executables(name: str, folders: Iterable[str] = FOLDERS) -> list[Path]:
    """Return the programs of that name: the one on PATH first, then those in ``folders``.

    Folders may be patterns; among the matches of one, the last in order comes first, which is the
    newest version.
    """
    found = [shutil.which(name)]
    for folder in folders:
        found += [shutil.which(name, path=each) for each in sorted(glob(folder), reverse=True)]
    paths = [Path(path).resolve() for path in found if path]
    return list(dict.fromkeys(paths))


def version_of(program: Path, account: str | None) -> str:
    """Return what a program says to ``--version``; raise ``NotFound`` if it cannot be run."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            cwd="/",
            **identity(account),
        )
    except (OSError, subprocess.SubprocessError) as error:
        who = f" as {account}" if account else ""
        raise NotFound(f"{program} cannot be run{who}: {error}") from None
    return str(done.stdout)


def account_for(*names: str) -> str | None:
    """Return the account that a server runs under; ``None``: our own.

    Servers refuse to run as root: then it is the first of ``names`` that exists, or ``nobody``.
    """
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in (*names, "nobody") if name in known), "nobody")


def identity(account: str | None) -> dict[str, Any]:
    """Return the arguments that let ``subprocess`` run something under an account."""
    if account is None:
        return {}
    entry = pwd.getpwnam(account)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
