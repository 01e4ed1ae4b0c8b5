"""A keeper ends its server, and removes its folder, however its holder ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from ..processes import proc
from ..processes.forked import WORKSPACE
from ..processes.waiting import wait_for
from . import keeper

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")

SLEEP = (
    "import os, pathlib, time; pathlib.Path('pid').write_text(f'{os.getpid()} '); time.sleep(99)"
)
SERVER = [sys.executable, "-c", SLEEP]
STARTER = [sys.executable, "-c", f"import subprocess; subprocess.Popen({SERVER!r})"]
STOP = [
    sys.executable, "-c", "import os, pathlib; os.kill(int(pathlib.Path('pid').read_text()), 15)"
]  # fmt: skip
HOLDER = """
import subprocess, sys, time
subprocess.Popen([sys.executable, *sys.argv[1:]], stdin=subprocess.PIPE, start_new_session=True)
time.sleep(99)
"""


def command(folder: Path, **plan: Any) -> list[str]:
    """Return the arguments of a Python that keeps a server in ``folder``."""
    folder.mkdir()
    order = {"prepare": [], "serve": SERVER, "stop": [], "signal": signal.SIGKILL}
    order |= {"folder": str(folder), "identity": {}, **plan}
    return [keeper.__file__, json.dumps(order)]


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE)


def served(folder: Path) -> int:
    """Return the pid of the server, once it runs."""
    file = folder / "pid"
    wait_for(lambda: file.exists() and file.read_text().endswith(" "), 10, "the server")
    return int(file.read_text())


@pytest.mark.parametrize("plan", [{}, {"serve": STARTER, "stop": STOP}], ids=["direct", "starter"])
def test_the_server_ends_with_the_input(tmp_path: Path, plan: dict[str, Any]) -> None:
    folder = tmp_path / "server"
    with start(command(folder, **plan)) as process:
        pid = served(folder)
        assert proc.alive(pid)
        process.communicate(timeout=10)
    assert not proc.alive(pid)
    assert not folder.exists()


def test_the_server_ends_with_a_holder_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with subprocess.Popen([sys.executable, "-c", HOLDER, *command(folder)]) as holder:
        pid = served(folder)
        holder.kill()
    wait_for(lambda: not proc.alive(pid), 10, "the end of the server")
    wait_for(lambda: not folder.exists(), 10, "the end of its folder")


def test_the_server_ends_with_a_keeper_that_is_told_to_end(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with start(command(folder)) as process:
        pid = served(folder)
        process.terminate()
        assert process.wait(10) == 128 + signal.SIGTERM
    assert not proc.alive(pid)
    assert not folder.exists()


def test_a_server_that_ends_by_itself_ends_the_keeper(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with start(command(folder, serve=[sys.executable, "-c", "raise SystemExit(7)"])) as process:
        assert process.wait(10) == 7
    assert not folder.exists()


def test_the_folder_is_prepared_by_the_first_command_that_can(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    one, two = (["touch", str(folder / name)] for name in ("one", "two"))
    with start(command(folder, prepare=[["false"], one, two])) as process:
        served(folder)
        assert (folder / "one").exists()
        assert not (folder / "two").exists()
        process.communicate(timeout=10)


def test_nothing_is_served_from_a_folder_that_cannot_be_prepared(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with start(command(folder, prepare=[["false"], ["false"]])) as process:
        assert process.wait(10) == 1
    assert not folder.exists()


def without_servers() -> dict[str, str]:
    """Return an environment in which a session starts servers of its own."""
    return {
        name: value for name, value in os.environ.items()
        if not name.startswith(("STEADY_QUEUE_TEST_", "PYTEST_"))
    }  # fmt: skip


#: A test of a session that is cut short. Each worker of pytest-xdist gets a class.
LONG = """
import pathlib, time
import pytest
from tests.servers.client import version
from tests.servers.kinds import KINDS

@pytest.mark.server("postgres")
class TestLong{number}:
    def test(self):
        begun = pathlib.Path(__file__).with_name("{number}.begun")
        begun.write_text(version(KINDS["postgres"].given()))
        time.sleep(99)
"""


@pytest.mark.server("postgres")
@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.thorough), 2], ids=["alone", "xdist"]
)
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_no_server_outlives_a_session_that_is_cut_short(
    tmp_path: Path, signum: signal.Signals, workers: int
) -> None:
    tests = tmp_path / "test_long.py"
    tests.write_text("".join(LONG.format(number=number) for number in range(workers)))
    session, told = started(tmp_path, "-n", str(workers if workers > 1 else 0), str(tests))
    with session, ExitStack() as stack:
        stack.callback(session.kill)
        wait_for(lambda: len(list(tmp_path.glob("*.begun"))) == workers, 60, "the tests")
        [kept] = keepers(session.pid)
        folder, family = folder_of(kept), {kept, *children(kept)}
        assert len(family) > 1
        if signum == signal.SIGINT:
            os.killpg(session.pid, signum)  # As a terminal does.
            assert session.wait(40) == pytest.ExitCode.INTERRUPTED
            told_of = rf"^PostgreSQL .* in .* s, {workers} tests$"
            assert re.search(told_of, told.read_text(), re.MULTILINE)
        else:
            session.send_signal(signum)
    wait_for(lambda: not any(map(proc.alive, family)), 20, f"the end of {sorted(family)}")
    wait_for(lambda: not folder.exists(), 20, f"the end of {folder}")


def started(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a session for tests that are in no package; return it, and where its output goes."""
    told = folder / "told"
    with told.open("wb") as out:
        session = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml"),
                *arguments,
            ],
            cwd=WORKSPACE,
            env={**without_servers(), "TMPDIR": str(folder)},
            stdout=out,
            start_new_session=True,
        )
    return session, told


def children(*parents: int) -> set[int]:
    return {each.pid for each in proc.everything() if each.parent in parents and each.alive}


def keepers(parent: int) -> set[int]:
    """Return the keepers among the children of a process; others may end while we look."""
    found = set()
    for pid in children(parent):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if keeper.__file__.encode() in words:
                found.add(pid)
    return found


def folder_of(pid: int) -> Path:
    """Return where the server of a keeper has its data."""
    order = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[2]
    return Path(json.loads(order)["folder"])
