"""``python -m tests.servers`` runs a command beside servers, which end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes.forked import WORKSPACE
from .address import Address
from .client import connect
from .kinds import KINDS
from .test_keeper import without_servers

pytestmark = pytest.mark.server("postgres")

HERE = [sys.executable, "-m", "tests.servers", "--only", "postgres"]
#: Ends with a status of its own after a signal, which it may get once.
WAITS = """
import signal, sys
def end(number, frame):
    signal.signal(number, signal.SIG_DFL)
    print(number, flush=True)
    sys.stdin.read()
    sys.exit(40 + number)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, end)
print("ready", flush=True)
signal.pause()
"""


def run(*command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HERE, *command], cwd=WORKSPACE, env=env, capture_output=True, text=True, check=False
    )


def test_the_command_has_servers_and_its_status_is_passed_on(tmp_path: Path) -> None:
    environment = {**without_servers(), "TMPDIR": str(tmp_path)}
    done = run("sh", "-c", f"echo ${KINDS['postgres'].variable}; exit 7", env=environment)
    assert done.returncode == 7, done.stderr
    assert "PostgreSQL" in done.stderr
    address = Address.parse(done.stdout.strip(), "postgresql")
    with pytest.raises(Exception, match="refused"):
        connect(address)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on_once(signum: signal.Signals) -> None:
    with subprocess.Popen(
        [*HERE, sys.executable, "-c", WAITS],
        cwd=WORKSPACE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signum)  # As a terminal does.
        assert int(process.stdout.readline()) == signum
        process.communicate(timeout=20)
    assert process.returncode == 40 + signum


def test_a_command_that_a_signal_ends_or_that_is_not_there_has_the_status_of_a_shell() -> None:
    assert run("sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    assert run("no-such-command").returncode == 127


def test_a_kind_that_nobody_knows_is_named() -> None:
    done = run("--only", "postgres,oracle", "true")
    assert (done.returncode, "oracle" in done.stderr) == (2, True)
