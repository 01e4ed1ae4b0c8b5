"""Type checkers see what a task is called with, and what it returns.

pyright is run where it is found: on PATH, or where ``make pyright`` puts it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

#: Where a type checker is to find the lines that say so, and where nothing at its strictest.
USES, STRICT = (Path(__file__).with_name(name) for name in ("uses.py", "strict_uses.py"))
BOTH = pytest.mark.parametrize("uses", [USES, STRICT], ids=lambda path: path.stem)
CONFIGURATION = """
[mypy]
strict = True
disable_error_code = type-arg
plugins = mypy_django_plugin.main
mypy_path = {paths}
follow_imports = silent
cache_dir = {cache}

[mypy.plugins.django-stubs]
django_settings_module = tests.settings
"""

pytestmark = [pytest.mark.slow]


def wrong_lines(uses: Path) -> set[int]:
    lines = enumerate(uses.read_text().splitlines(), 1)
    return {number for number, line in lines if line.endswith("# wrong")}


@BOTH
def test_mypy_sees_wrong_calls_and_no_others(uses: Path, workspace: Path, tmp_path: Path) -> None:
    configuration = tmp_path / "mypy.ini"
    paths = [workspace / "steady_queue_core", workspace]
    configuration.write_text(
        CONFIGURATION.format(
            paths=":".join(map(str, paths)), cache=workspace / ".mypy_cache" / "uses"
        )
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(configuration), str(uses)]
    result = subprocess.run(
        command, cwd=workspace, capture_output=True, text=True, timeout=300, check=False
    )
    found = re.findall(rf"\b{uses.name}:(\d+): error: ", result.stdout)
    assert {int(number) for number in found} == wrong_lines(uses), result.stdout + result.stderr


def pyright(workspace: Path) -> str | None:
    return shutil.which("pyright") or shutil.which(
        "pyright", path=str(workspace / ".pyright" / "node_modules" / ".bin")
    )


@BOTH
def test_pyright_sees_wrong_calls_and_no_others(uses: Path, workspace: Path) -> None:
    program = pyright(workspace)
    if program is None:
        pytest.skip("no pyright here: `make pyright` installs it with npm")
    command = [program, "--outputjson", "--pythonpath", sys.executable, str(uses)]
    result = subprocess.run(
        command, cwd=workspace, capture_output=True, text=True, timeout=300, check=False
    )
    found = [
        each
        for each in json.loads(result.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    lines = {each["range"]["start"]["line"] + 1 for each in found}
    assert lines == wrong_lines(uses), result.stdout + result.stderr
