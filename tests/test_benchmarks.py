"""The benchmarks' own arithmetic; what they measure is not for a test suite."""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.adapters import competitors
from benchmarks.cli import main
from benchmarks.databases import NAMES, Counts
from benchmarks.proxy import Proxy
from benchmarks.statements import Look


class Echo(socketserver.StreamRequestHandler):
    """Answers each line with the same line, in two pieces."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line[:1])
            self.wfile.flush()
            self.wfile.write(line[1:])


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as echo:
        echo.daemon_threads = True
        threading.Thread(target=echo.serve_forever, daemon=True).start()
        yield echo.server_address
        echo.shutdown()


def test_the_proxy_passes_on_and_counts_answers_not_pieces(server: tuple[str, int]) -> None:
    with Proxy(*server) as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as client:
        answers = client.makefile("rb")
        for pieces in ([b"one\n"], [b"tw", b"o\n"], [b"x" * 500_000 + b"\n"]):
            for piece in pieces:
                client.sendall(piece)
            assert answers.readline() == b"".join(pieces)
    assert proxy.round_trips == 3


def test_a_job_costs_what_was_counted_between_two_looks() -> None:
    before = Look(100, Counts(statements=50, commits=10), round_trips=40)
    after = Look(300, Counts(statements=250, commits=20), round_trips=140)
    assert after.since(before, "run") == {
        "statements_run": 1.0,
        "commits_run": 0.05,
        "round_trips_run": 0.5,
    }


def test_a_server_that_does_not_count_statements_leaves_them_out() -> None:
    before, after = Look(0, Counts(None, 0), 0), Look(10, Counts(None, 5), 20)
    assert after.since(before, "run") == {"commits_run": 0.5, "round_trips_run": 2.0}


def test_the_list_names_all_contenders(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*competitors()]


def test_a_contender_says_why_it_does_not_run_on_a_database() -> None:
    for adapter in competitors().values():
        assert set(adapter.databases) <= set(NAMES)
        assert bool(adapter.elsewhere) == (set(adapter.databases) != set(NAMES))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the harness needs Python 3.12")
def test_the_harness_needs_no_environment(workspace: Path) -> None:
    """What is measured is installed elsewhere; ``-S`` leaves out all that is installed here."""
    listed = subprocess.run(
        [sys.executable, "-S", "-m", "benchmarks", "--list"],
        cwd=workspace, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    assert "floor" in listed.stdout
