"""One virtual environment for each competitor, kept between runs."""

from __future__ import annotations

import hashlib
import json
import os
import site
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = "constraints-3.13.txt"
INSTALL_TIMEOUT = 600


def cache() -> Path:
    """Return where the environments are kept: `BENCHMARKS_CACHE`, or the user's cache directory."""
    if given := os.environ.get("BENCHMARKS_CACHE"):
        return Path(given)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "steady-queue-benchmarks"
    return Path(tempfile.gettempdir()) / "steady-queue-benchmarks"


def prepare(requirements: Sequence[str], python: str) -> str:
    """Make or renew the environment with these requirements; return its interpreter."""
    directory = _directory(requirements, python)
    interpreter = str(directory / "bin" / "python")
    stamp = directory / "installed.json"
    wanted = {"requirements": list(requirements), "sources": _fingerprint(requirements)}
    if stamp.exists() and json.loads(stamp.read_text()) == wanted:
        return interpreter
    stamp.unlink(missing_ok=True)
    if not Path(interpreter).exists():
        _run([python, "-m", "venv", str(directory)])
    pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The same Django, and the same of everything else that the competitors share.
    if (ROOT / CONSTRAINTS).exists():
        pip += ["-c", CONSTRAINTS]
    _run([*pip, *requirements])
    if local := [name for name in requirements if name.startswith("./")]:
        # The version of a working tree says nothing about its content.
        _run([*pip, "--force-reinstall", "--no-deps", *local])
    stamp.write_text(json.dumps(wanted))
    return interpreter


def borrow(requirements: Sequence[str], python: str) -> None:
    """Make the requirements importable in this process, which runs ``python``."""
    found = Path(prepare(requirements, python)).parent.parent.glob("lib/python*/site-packages")
    for directory in found:
        site.addsitedir(str(directory))


def versions(interpreter: str, distributions: Iterable[str]) -> dict[str, str]:
    """Return the installed versions."""
    code = (
        "import json, sys; from importlib.metadata import version;"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    done = subprocess.run(
        [interpreter, "-c", code, *distributions], check=True, capture_output=True, text=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:4])} failed:\n{done.stderr.strip()[-2000:]}")


def _directory(requirements: Sequence[str], python: str) -> Path:
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    key = "+".join(_file_name(requirement) for requirement in requirements)
    return cache() / f"{key}-{version}"


def _file_name(requirement: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in requirement).strip(".-/")


def _fingerprint(requirements: Iterable[str]) -> str:
    """Return a digest of the sources that are installed from the working tree."""
    digest = hashlib.sha256()
    for requirement in requirements:
        if not requirement.startswith("./"):
            continue
        for path in sorted((ROOT / requirement).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
