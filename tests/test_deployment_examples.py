"""The files of ``examples/deployment``: what they start exists, and takes these arguments."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import load_command_class

from steady_queue_core.cli import main

from . import documents

FOLDER = documents.WORKSPACE / "examples" / "deployment"


def commands() -> list[tuple[str, list[str]]]:
    """Return each command line of the queue in the examples, with the file that it is in."""
    service = (FOLDER / "steady-queue.service").read_text()
    [start] = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
    dockerfile = (FOLDER / "Dockerfile").read_text()
    [command] = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
    [args] = re.findall(r"args: (\[.*\])$", (FOLDER / "kubernetes.yaml").read_text(), re.MULTILINE)
    [worker] = re.findall(r"^worker: (.*)$", (FOLDER / "Procfile").read_text(), re.MULTILINE)
    return [
        ("steady-queue.service", shlex.split(start)),
        ("Dockerfile", json.loads(command)),
        ("kubernetes.yaml", json.loads(args)),
        ("Procfile", shlex.split(worker)),
    ]


@pytest.mark.parametrize(("file", "words"), commands(), ids=[file for file, _ in commands()])
def test_the_queue_takes_these_arguments(file: str, words: list[str]) -> None:
    assert words[1:3] == ["manage.py", "steady_queue"]
    parser = load_command_class("steady_queue_core", "steady_queue").create_parser(
        "manage.py", "steady_queue"
    )
    parser.parse_args(words[3:])  # Exits if it does not.


def test_probes_from_outside_of_a_container_are_answered() -> None:
    for file, words in commands():
        if "--probe-port" in words:
            assert words[words.index("--probe-address") + 1] == "0.0.0.0", file


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = (FOLDER / "steady-queue.service").read_text()
    # It looks for the program and the user, too.
    unit = unit.replace("/srv/shop/venv/bin/python", "/bin/sh").replace("User=shop", "User=root")
    (tmp_path / "steady-queue.service").write_text(unit)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "steady-queue.service")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in checked.stderr.splitlines() if "steady-queue.service" in line]
    assert ours == []


def test_the_health_check_of_the_image_is_a_command(tmp_path: Path) -> None:
    [words] = re.findall(
        r"CMD (\[.*health.*\])$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE
    )
    program, *arguments = json.loads(words)
    assert program == "steady-queue"
    assert main([*arguments[:-1], str(tmp_path / "missing")]) == 1
    (tmp_path / "beat").touch()
    assert main([*arguments[:-1], str(tmp_path / "beat")]) == 0
