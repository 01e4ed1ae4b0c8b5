"""The files that hold what was sent: those of MariaDB, how that differs from what MySQL is sent."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Folders whose files are differences from those of another one; none says that there are none.
BASES = {"mariadb": "mysql"}


def path_of(folder: str, operation: str) -> Path:
    return HERE / folder / f"{operation}.{'diff' if folder in BASES else 'sql'}"


def form_of(text: str, folder: str, operation: str) -> str:
    """Return what a file of the folder says for ``text``."""
    if folder not in BASES:
        return text
    return difference(golden(BASES[folder], operation), text, context=1)


def golden(folder: str, operation: str) -> str:
    path = path_of(folder, operation)
    return path.read_text() if path.exists() else ""


def write(folder: str, operation: str, form: str) -> None:
    path = path_of(folder, operation)
    if form:
        path.parent.mkdir(exist_ok=True)
        path.write_text(form)
    else:
        path.unlink(missing_ok=True)


def difference(before: str, after: str, context: int = 3) -> str:
    """Return the hunks of a unified diff, without a head."""
    lines = unified_diff(before.splitlines(True), after.splitlines(True), n=context)
    return "".join([*lines][2:])
