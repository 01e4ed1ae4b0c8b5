"""A database that goes silent, without a word: connections stay open, and nobody answers."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steady_queue_core.conformance.relay import Relay

from ..servers.breakable import BreakableServer
from . import proc
from .conftest import EACH_SERVER, MakeProject
from .harness import Project, Supervisor
from .scenarios import SHORT_LEASE, durations, queue, stop_all, verdict
from .waiting import wait_for

#: Seconds until silence is told, until work goes on, and until a signal is obeyed.
TOLD, RESUMED, STOPPED = 10.0, 15.0, 5.0
JOBS = 40
SHUTDOWN = 1
#: The queue's own processes are behind the proxy, unless they are told not to be.
BEHIND_PROXY = """
import os, sys
if {{"steady_queue", "-c"}} & set(sys.argv) and "DIRECTLY" not in os.environ:
    DATABASES["default"] |= {{"PORT": {port}}}
"""
EMBEDDED = """
import django, sys, time
django.setup()
from steady_queue_core.embedding import EmbeddedQueue
queue = EmbeddedQueue()
queue.start()
print("started", flush=True)
sys.stdin.readline()
print(queue.stop(), flush=True)
"""


signals = pytest.mark.parametrize(
    "signum",
    [signal.SIGTERM, pytest.param(signal.SIGQUIT, marks=pytest.mark.thorough)],
    ids=["TERM", "QUIT"],
)


class Line:
    """A project whose processes reach its server by a line that can go silent."""

    def __init__(self, server: BreakableServer, make_project: MakeProject) -> None:
        self.server = server
        self.proxy = Relay("127.0.0.1", server.address.port)
        self.project: Project = make_project(
            queue(processes=1, threads=4, shutdown_timeout=SHUTDOWN, **SHORT_LEASE),
            extra=BEHIND_PROXY.format(port=self.proxy.port),
            at=server.address,
        )

    def silence(self) -> None:
        """Have nothing answered, be it by the network or by a server that is frozen."""
        self.proxy.silence()

    def close(self) -> None:
        print(self.project.logs())  # For a test that fails.
        self.proxy.resume()
        self.server.restore()
        try:
            stop_all(self.project)
        finally:
            self.proxy.close()


@pytest.fixture(params=EACH_SERVER)
def line(
    request: pytest.FixtureRequest,
    breakable_servers: dict[str, BreakableServer],
    make_project: MakeProject,
) -> Iterator[Line]:
    made = Line(breakable_servers[request.param], make_project)
    yield made
    made.close()


def wait_told(supervisor: Supervisor, since: int = 0) -> None:
    wait_for(lambda: " is unavailable" in supervisor.errors()[since:], TOLD, "word of it")


@pytest.mark.thorough
def test_connections_that_are_forgotten_are_replaced(line: Line) -> None:
    """As by a firewall: new ones work at once. The work that goes on is the same processes'."""
    supervisor = line.project.start()
    supervisor.wait_ready(1)
    family = set(supervisor.children())
    ids = line.project.enqueue("work", *durations(JOBS, 0.02))
    wait_for(lambda: len(line.project.attempts()) > JOBS // 4, 30, "starts")
    line.proxy.forget()
    [job_id] = line.project.enqueue("work", [0.0])
    line.project.wait_started(job_id, seconds=RESUMED)
    line.project.wait_done()
    wait_told(supervisor)
    assert set(supervisor.children()) == family, line.project.logs()
    assert "declared dead" not in supervisor.errors()
    assert verdict(line.project) == []
    assert len(line.project.attempts()) == len(ids) + 1


@pytest.mark.parametrize("how", [pytest.param("network", marks=pytest.mark.thorough), "server"])
def test_silence_is_told_and_work_goes_on_when_it_ends(line: Line, how: str) -> None:
    """Those who try to connect meanwhile are not answered, either."""
    supervisor = line.project.start()
    supervisor.wait_ready(1)
    family = set(supervisor.children())
    line.project.enqueue("work", *durations(JOBS, 0.02))
    wait_for(lambda: len(line.project.attempts()) > JOBS // 4, 30, "starts")
    fall_silent, speak = line.proxy.silence, line.proxy.resume
    if how == "server":
        fall_silent, speak = line.server.freeze, line.server.thaw
    fall_silent()
    wait_told(supervisor)
    time.sleep(2.0)  # For some to try in vain.
    speak()
    [job_id] = line.project.enqueue("work", [0.0])
    line.project.wait_started(job_id, seconds=RESUMED)
    line.project.wait_done()
    assert set(supervisor.children()) == family, line.project.logs()
    assert verdict(line.project) == []
    assert len(line.project.attempts()) == JOBS + 1


def test_a_supervisor_that_was_cut_off_takes_nobody_for_dead(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go on meanwhile, and take over what it had."""
    cut_off = line.project.start()
    cut_off.wait_ready(1)
    monkeypatch.setattr(Project, "environment", _with_variable(Project.environment, "DIRECTLY"))
    other = line.project.start()
    other.wait_ready(1)
    line.silence()
    wait_told(cut_off)
    line.project.enqueue("work", *durations(JOBS, 0.02))
    line.project.wait_done()
    line.proxy.resume()
    wait_for(lambda: "is available again" in cut_off.errors(), RESUMED, "its return")
    cut_off.wait_ready(1)
    line.project.enqueue("work", *durations(JOBS, 0.02))
    line.project.wait_done()
    assert "declared dead" not in other.errors()
    assert "sent no heartbeat" not in cut_off.errors()
    assert verdict(line.project) == []


@signals
def test_a_stop_is_obeyed_whatever_the_database_does(line: Line, signum: int) -> None:
    """By processes and by threads; what they could not give back, the next supervisor does."""
    allowed = STOPPED + (SHUTDOWN if signum == signal.SIGTERM else 0)
    stopping = [line.project.start(), line.project.start("--mode", "async")]
    # Only this one's workers are processes.
    stopping[0].wait_ready(1)
    wait_for(lambda: "Started worker" in stopping[1].errors(), 20, "the threads")
    with embedded(line.project) as stop:
        ids = line.project.enqueue("work", *[[2.5]] * 3)
        for job_id in ids:
            line.project.wait_started(job_id)
        line.silence()
        families = [each.pid for each in stopping] + stopping[0].children()
        time.sleep(0.5)  # For all of them to ask, and to wait for the answer.
        began = time.monotonic()
        for supervisor in stopping:
            supervisor.send(signum)
        assert [each.wait_exit(allowed) for each in stopping] == [0, 0]
        assert not any(map(proc.alive, families))
        stop(SHUTDOWN + STOPPED + time.monotonic() - began)
    line.proxy.resume()
    after = line.project.start()
    line.project.wait_done()
    assert after.stop() == 0
    # Broken off, and run again; none has lost its only attempt.
    assert [line.project.state_of(job_id) for job_id in ids] == ["finished"] * len(ids)
    ended = [attempt for attempt in line.project.attempts() if attempt.ended_at is not None]
    assert sorted(attempt.job_id for attempt in ended) == sorted(ids)


@pytest.mark.parametrize("mode", ["fork", "async"])
@signals
@pytest.mark.thorough
def test_a_stop_is_obeyed_while_the_file_is_locked(
    make_project: MakeProject, signum: int, mode: str
) -> None:
    """SQLite: by somebody else, and for as long as he likes."""
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=SHUTDOWN))
    supervisor = project.start("--mode", mode)
    wait_for(lambda: "Started worker" in supervisor.errors(), 20, "a worker")
    [job_id] = project.enqueue("work", [2.5])
    project.wait_started(job_id)
    with project.write_lock(), project.lock_file():
        began = time.monotonic()
        supervisor.send(signum)
        assert supervisor.wait_exit(STOPPED + SHUTDOWN) == 0
        if signum == signal.SIGQUIT:
            assert time.monotonic() - began < STOPPED
    after = project.start()
    project.wait_done()
    assert project.state_of(job_id) == "finished"
    assert after.stop() == 0


def test_a_child_obeys_by_itself_whatever_the_database_does(line: Line) -> None:
    """Each of them, when its main thread waits for an answer."""
    supervisor = line.project.start()
    supervisor.wait_ready(1)
    dispatcher, worker = _pid_of(supervisor, "dispatcher"), _pid_of(supervisor, "worker")
    line.silence()
    time.sleep(0.5)
    supervisor.send(signal.SIGQUIT, worker)
    supervisor.send(signal.SIGTERM, dispatcher)
    wait_for(lambda: not proc.alive(worker), 1.5, "the worker's end")
    wait_for(lambda: not proc.alive(dispatcher), SHUTDOWN + STOPPED, "the dispatcher's end")
    line.proxy.resume()
    supervisor.wait_ready(1)


def _pid_of(supervisor: Supervisor, kind: str) -> int:
    found = re.search(rf"Started {kind}-\w+ \(pid (\d+)\)", supervisor.errors())
    assert found is not None
    return int(found[1])


def _with_variable(
    environment: Callable[[Project], dict[str, str]], name: str
) -> Callable[[Project], dict[str, str]]:
    return lambda project: environment(project) | {name: "1"}


@contextmanager
def embedded(project: Project) -> Iterator[Callable[[float], None]]:
    """A process that embeds the queue; yields what stops it within some seconds."""
    log = Path(project.folder / "embedded.err")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", EMBEDDED],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            cwd=project.folder, env=project.environment(), start_new_session=True, text=True,
        )  # fmt: skip

    def stop(seconds: float) -> None:
        try:
            said, _ = process.communicate("\n", timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end after {seconds:g} s:\n{log.read_text()}") from None
        assert said.split() == ["started", "True"], log.read_text()

    try:
        wait_for(lambda: "Started worker" in log.read_text(), 20, "the embedded queue")
        yield stop
    finally:
        process.kill()
        process.communicate()
