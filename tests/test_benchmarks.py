"""The benchmarks' own arithmetic; what they measure is not for a test suite."""

from __future__ import annotations

import socket
import socketserver
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import client, project, table, task_probe
from benchmarks.adapters import competitors
from benchmarks.calls.tracer import Tracer
from benchmarks.cli import main
from benchmarks.competitor import _server_us
from benchmarks.databases import NAMES, Counts
from benchmarks.databases.sqlite import SQLite
from benchmarks.drains import DRAINS
from benchmarks.options import Options
from benchmarks.processes import Tree
from benchmarks.proxy import Proxy
from benchmarks.statements import Look
from steady_queue_core import arguments

ENDS = ("", "_cpu_us", "_server_us")


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


def test_a_task_that_was_given_another_number_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHMARK_EFFECTS", str(tmp_path))
    monkeypatch.setattr(task_probe, "_marks", task_probe._Marks())
    for number in (0, 1, 2):
        task_probe.mark(number)
    client._check_numbers(task_probe.effects(tmp_path), 3)
    task_probe.mark(4)
    with pytest.raises(ValueError, match="4 jobs add up to 7"):
        client._check_numbers(task_probe.effects(tmp_path), 4)


def test_calls_are_timed_one_by_one_and_counted() -> None:
    numbers: list[int] = []
    calls = client._timed(numbers.append, 5, 60)
    assert numbers == [0, 1, 2, 3, 4]
    assert len(calls.seconds) == 5
    assert sum(calls.seconds) == pytest.approx(calls.elapsed)
    assert client._timed(numbers.append, 5, 0).seconds == []


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(200, 0, -1)]
    assert client._quantiles(values) == {"p50": 100, "p95": 190, "p99": 198}
    assert client._quantiles([7.0]) == {"p50": 7, "p95": 7, "p99": 7}


def test_this_project_alone_runs_with_stock_logging(tmp_path: Path) -> None:
    options = Options(directory=tmp_path, python=sys.executable)
    loud = set()
    for name, adapter in competitors().items():
        project.write(tmp_path / name, adapter, SQLite(tmp_path, "NORMAL"), options)
        settings = (tmp_path / name / "settings.py").read_text()
        if "LOGGING" not in settings:
            loud.add(name)
    # The floor, pgqueuer and oban log nothing of jobs, whatever the settings.
    ours = {"steady_queue", "steady_queue-forked", "steady_queue-defaults"}
    assert loud == ours | {"floor", "pgqueuer", "oban"}


def test_a_contender_has_each_task_that_it_is_measured_by(tmp_path: Path) -> None:
    options = Options(directory=tmp_path, python=sys.executable)
    for name, adapter in competitors().items():
        text = "".join(adapter.files(options).values())
        for drain in DRAINS:
            if drain.fits(adapter.capabilities) and name != "floor":
                assert f"def {drain.task}(" in text, (name, drain.key)


def test_each_drain_has_its_own_rows_in_the_table() -> None:
    figures = {"steady_queue": [{f"{drain.key}{end}": 7.0 for drain in DRAINS for end in ENDS}]}
    lines = table.render(figures).splitlines()
    assert len([line for line in lines if line.startswith("drain, ")]) == len(DRAINS)
    assert len([line for line in lines if " us/job" in line]) == 2 * len(DRAINS)


def test_the_time_of_the_server_is_what_passed_between_two_looks() -> None:
    before, after = Counts(1, 1, 500.0), Counts(9, 9, 2500.0)
    assert _server_us(before, after) == 2000.0
    assert _server_us(Counts(1, 1), after) is None
    assert _server_us(None, None) is None


def test_a_paused_process_waits_until_it_is_resumed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time\nwhile True: time.sleep(0.001)"]
    with Tree([command], directory=tmp_path, environment={}, log=tmp_path / "log") as tree:
        [pid] = tree.pids()
        tree.pause()
        wait_for_state(pid, "T")
        tree.resume()
        wait_for_state(pid, "S")


def wait_for_state(pid: int, state: str) -> None:
    """Read it as a letter of `/proc`, until it is that one."""
    deadline = time.monotonic() + 20
    while (found := Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]) != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.005)


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


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the harness needs Python 3.12")
def test_the_tracer_counts_the_calls_of_all_threads_and_finds_the_way_to_a_statement() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    encoded = arguments.encode([1], root="value")

    def work() -> None:
        arguments.decode(encoded)
        connection.execute("SELECT 1")

    with Tracer(arguments.decode.__code__) as tracer:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        work()
    for ident in (thread.ident, threading.get_ident()):
        assert ident is not None
        assert tracer.calls[ident][work.__code__] == 1
        assert tracer.calls[ident]["Connection.execute"] == 1
        assert tracer.paths[ident]["statement"] == []
        assert tracer.paths[ident]["decode"] == [arguments.decode.__code__]
    connection.close()


@pytest.mark.slow
@pytest.mark.thorough
def test_the_costs_of_batches_are_measured(workspace: Path) -> None:
    measured = subprocess.run(
        [sys.executable, "-m", "benchmarks.batches", "--database", "sqlite", "--jobs", "200",
         "--nodes", "20", "--late", "150", "--samples", "5", "--processes", "1",
         "--drained", "50", "--turns", "1"],
        cwd=workspace, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert "Traceback" not in measured.stderr, measured.stderr
    # So few samples say nothing of the limits.
    assert measured.returncode in (0, 1)
    storing, settling, together = measured.stdout.strip().split("\n\n")
    assert "storing 200 jobs, 20 nodes" in storing
    assert "no. 150" in settling
    assert "1 workers" in together
    for text in (storing, settling, together):
        _, _, line = text.splitlines()
        assert line.startswith("SQLite 3.")
        assert "nan" not in line


@pytest.mark.slow
@pytest.mark.thorough
def test_the_cost_of_statistics_is_measured(workspace: Path) -> None:
    measured = subprocess.run(
        [sys.executable, "-m", "benchmarks.statistics", "--database", "sqlite", "--jobs", "50",
         "--processes", "1", "--turns", "1"],
        cwd=workspace, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert measured.returncode == 0, measured.stderr
    _, _, line = measured.stdout.splitlines()
    assert line.startswith("SQLite 3.")
    assert "nan" not in line
