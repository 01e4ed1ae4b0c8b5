"""Makes the map of the code, ``docs/map.md``, from the docstrings of all modules: ``make map``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
MAP = WORKSPACE / "docs" / "map.md"
#: Their modules say what they do by their names.
LEFT_OUT = {"migrations"}
HEAD = """\
# The map of the code

Every package and module of the four distributions, in the words of their docstrings. `make map`
writes this page; [architecture](architecture.md) says how the parts work together.
"""


def main() -> None:
    """Write the page."""
    MAP.write_text(text())


def text() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for package in _packages() for line in _section(package))])


def _packages() -> Iterator[Path]:
    """Yield the folders of all packages."""
    for package in sorted(WORKSPACE.glob("steady_queue_*/steady_queue_*/")):
        folders = {path.parent for path in package.rglob("*.py")}
        yield from sorted(each for each in folders if not LEFT_OUT.intersection(each.parts))


def _section(package: Path) -> Iterator[str]:
    """Yield the lines about one package."""
    modules = sorted(path for path in package.glob("*.py") if path.name != "__init__.py")
    name = package.relative_to(WORKSPACE).as_posix().partition("/")[2]
    about = _docstring(package / "__init__.py")
    yield from [f"## {name}", "", *([about, ""] if about else [])]
    if modules:
        yield from ["| module | |", "|---|---|"]
        for path in modules:
            yield f"| `{path.name}` | {_summary(path)} |"
        yield ""


def _summary(path: Path) -> str:
    """Return the first paragraph of the docstring of a module, as one line."""
    return " ".join(_docstring(path).partition("\n\n")[0].split())


def _docstring(path: Path) -> str:
    """Return the docstring of a module in Markdown."""
    found = ast.get_docstring(ast.parse(path.read_text())) or ""
    marked = re.sub(r"``(.+?)``", r"`\1`", found)
    return re.sub(r":\w+:`[.~!]*(.+?)`", r"`\1`", marked).replace("|", "\\|")


if __name__ == "__main__":
    main()
