"""Signs of life that others look for: HTTP probes, the heartbeat file, and systemd's protocol."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest

from steady_queue_core.cli import main
from steady_queue_core.processes.base.shared_heartbeat import SharedHeartbeat
from steady_queue_core.processes.probe.server import (
    MOST_LONG,
    MOST_REQUESTS,
    Answer,
    ProbeServer,
    Route,
)
from steady_queue_core.processes.supervisor.health import HeartbeatFile

from . import proc
from .conftest import EVERYWHERE, MakeProject
from .harness import Supervisor
from .scenarios import queue, refusal, stop_all
from .waiting import wait_for

#: Lets no worker start its work until a file is there.
SLOW_START = """
import time
from pathlib import Path
from steady_queue_core.hooks import on_worker_start

@on_worker_start
def wait(process):
    while not (Path(__file__).parent / "go").exists():
        time.sleep(0.01)
"""


class Got(NamedTuple):
    status: int
    body: str

    @property
    def json(self) -> dict[str, object]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def get(port: int, path: str, method: str = "GET", host: str = "127.0.0.1") -> Got:
    connection = HTTPConnection(host, port, timeout=20)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return Got(answer.status, answer.read().decode())
    finally:
        connection.close()


def wait_status(port: int, path: str, status: int, seconds: float = 20.0) -> Got:
    def found() -> Got | None:
        try:
            got = get(port, path)
        except OSError:
            return None
        return got if got.status == status else None

    got = wait_for(found, seconds, f"{status} at {path}")
    assert got is not None
    return got


@pytest.mark.parametrize("mode", ["fork", "async"])
@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_healthy_queue_is_alive_and_ready(
    make_project: MakeProject, where: dict[str, str], mode: str
) -> None:
    project = make_project(queue(processes=1), **where)
    port = free_port()
    supervisor = project.start("--probe-port", str(port), "--mode", mode)
    ready = wait_status(port, "/readyz", 200)
    assert ready.json == {"ok": True, "processes": 3, "wanted": 3, "problems": []}
    alive = get(port, "/livez")
    assert alive.status == 200
    assert alive.json["ok"] is True
    assert get(port, "/livez?x=1", "HEAD") == (200, "")
    metrics = get(port, "/metrics")
    assert metrics.status == 200
    assert 'steady_queue_up{backend="default"} 1.0' in metrics.body
    assert get(port, "/").status == 404
    assert get(port, "/livez", "POST").status == 501
    assert "steady_queue" not in json.dumps(
        project.query("SELECT kind FROM steady_queue_processes")
    )
    project.enqueue("work")
    project.wait_done()
    assert supervisor.stop() == 0
    with pytest.raises(ConnectionError):
        get(port, "/livez")


def test_probes_are_answered_at_the_address_of_the_command_line(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    port = free_port()
    project.start("--probe-port", str(port), "--probe-address", "0.0.0.0")
    wait_status(port, "/livez", 200)
    assert get(port, "/livez", host="127.0.0.2").status == 200
    stop_all(project)


@contextmanager
def served(routes: dict[str, Route]) -> Iterator[int]:
    """Answer for these paths at a port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        server = ProbeServer(listening.fileno(), routes)
        serving = threading.Thread(target=server.serve_forever, args=[0.05])
        serving.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.shutdown()
            serving.join()
            server.server_close()


def test_slow_connections_keep_no_probe_from_its_answer() -> None:
    with served({"/livez": lambda accept: Answer.of([])}) as port, ExitStack() as stack:
        for _ in range(MOST_REQUESTS * 2):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            slow.sendall(b"GET /livez HT")
        assert [get(port, "/livez").status for _ in range(28)] == [200] * 28


def test_answers_that_take_time_keep_the_sign_of_life_from_nobody() -> None:
    done = threading.Event()

    def wait(accept: str | None) -> Answer:
        done.wait(20)
        return Answer.of([])

    routes = {"/livez": lambda accept: Answer.of([]), "/readyz": wait}
    with served(routes) as port, ThreadPoolExecutor(MOST_REQUESTS) as pool:
        asked = [pool.submit(get, port, "/readyz") for _ in range(MOST_REQUESTS)]
        wait_for(
            lambda: sum(each.done() for each in asked) == MOST_REQUESTS - MOST_LONG, 10, "some"
        )
        assert get(port, "/livez").status == 200
        done.set()
        assert sorted(each.result().status for each in asked) == [200] * MOST_LONG + [503] * (
            MOST_REQUESTS - MOST_LONG
        )


def test_an_outage_makes_it_unready_but_not_dead(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    port = free_port()
    project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    elsewhere = project.database.rename(project.folder / "elsewhere")
    project.database.mkdir()  # It is there, and cannot be opened.
    got = wait_status(port, "/readyz", 503)
    assert "the database is not available: unable to open database file" in got.body
    assert get(port, "/livez").status == 200
    project.database.rmdir()
    elsewhere.rename(project.database)
    wait_status(port, "/readyz", 200)
    stop_all(project)


def test_it_is_ready_when_all_processes_are_at_work(make_project: MakeProject) -> None:
    settings = queue(processes=2, task_modules=["slow_start"])
    project = make_project(settings, files={"slow_start.py": SLOW_START})
    port = free_port()
    project.start("--probe-port", str(port))
    got = wait_status(port, "/readyz", 503)
    wait_for(lambda: get(port, "/readyz").json["processes"] == 2, 20, "the others")
    got = get(port, "/readyz")
    assert got.json["problems"] == ["2 of 4 processes are at work"]
    (project.folder / "go").touch()
    wait_status(port, "/readyz", 200)
    stop_all(project)


def test_it_is_not_ready_while_it_stops(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, shutdown_timeout=20))
    port = free_port()
    supervisor = project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    [job] = project.enqueue("work", [8.0])
    project.wait_started(job)
    supervisor.send(signal.SIGTERM)
    got = wait_status(port, "/readyz", 503)
    assert got.json["problems"] == ["the queue is stopping"]
    assert get(port, "/livez").status == 200  # It is not to be killed for that.
    assert project.state_of(job) == "claimed"
    assert supervisor.wait_exit() == 0
    assert project.state_of(job) == "finished"


def test_without_the_library_metrics_say_what_to_install(make_project: MakeProject) -> None:
    extra = 'import sys\nsys.modules["prometheus_client.exposition"] = None\n'
    project = make_project(queue(processes=1), extra=extra)
    port = free_port()
    supervisor = project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    got = get(port, "/metrics")
    assert (got.status, "steady-queue-core[prometheus]" in got.body) == (501, True)
    stop_all(project)
    assert "could not be answered" not in supervisor.errors()


@pytest.mark.fresh
@pytest.mark.thorough
def test_a_restart_leaves_no_probe_unanswered(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    port = free_port()
    supervisor = project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    answers: list[object] = []
    done = threading.Event()

    def ask() -> None:
        while not done.wait(0.02):
            try:
                answers.append(get(port, "/livez").status)
            except OSError as error:
                answers.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 30, "the succession")
    wait_for(lambda: len(supervisor.children()) == 3, 15, "the end of the old ones")
    done.set()
    asking.join()
    assert set(answers) == {200}
    assert len(answers) > 20
    wait_status(port, "/readyz", 200)
    stop_all(project)


def test_a_request_outlasts_the_probe_that_accepted_it(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    port = free_port()
    supervisor = project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    probe = probe_of(supervisor)
    # The main thread, one that accepts and one that watches the supervisor.
    wait_for(lambda: threads(probe) == 3, 10, "the former requests to end")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\n")
        # A thread answers, and another one limits its time.
        wait_for(lambda: threads(probe) == 5, 10, "the request to be accepted")
        supervisor.send(signal.SIGTERM, probe)
        wait_for(lambda: threads(probe) == 4, 10, "the thread that accepts to end")
        client.sendall(b"Host: here\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.0 200 ")
    wait_for(lambda: probe not in supervisor.children(), 15, "the end of the old probe")
    stop_all(project)


def test_a_killed_probe_is_replaced_and_the_port_goes_with_the_supervisor(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1))
    port = free_port()
    supervisor = project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    probe = probe_of(supervisor)
    supervisor.send(signal.SIGKILL, probe)
    wait_for(lambda: probe not in supervisor.children(), 10, "its end")
    wait_status(port, "/readyz", 200)
    supervisor.send(signal.SIGKILL)
    wait_for(lambda: not proc.in_session(supervisor.pid), 15, "the end of all")
    with pytest.raises(ConnectionError):
        get(port, "/livez")


def test_only_the_probe_keeps_the_socket(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    port = free_port()
    supervisor = project.start("--probe-port", str(port))
    wait_status(port, "/readyz", 200)
    holders = [pid for pid in supervisor.children() if listens(pid, port)]
    assert len(holders) == 1
    stop_all(project)


def probe_of(supervisor: Supervisor) -> int:
    """Return the pid of the only process that serves the probes."""
    log = supervisor.errors()
    [pid] = [pid for pid in supervisor.children() if f"(pid {pid}): /livez" in log]
    return pid


def threads(pid: int) -> int:
    """Count the threads of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())


def listens(pid: int, port: int) -> bool:
    """Whether a process has a listening socket of that port open."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inodes = {
        line.split()[9]
        for line in lines
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    }
    folder = Path(f"/proc/{pid}/fd")
    held = {os.readlink(each) for each in folder.iterdir()}
    return any(f"socket:[{inode}]" in held for inode in inodes)


def test_an_address_that_is_taken_is_refused(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = refusal(project, "--probe-port", str(port))
    assert f"The probe cannot listen at 127.0.0.1, port {port}: " in message
    assert "Choose another port with --probe-port" in message


def test_the_heartbeat_file_is_touched_and_removed(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    file = project.folder / "beat"
    supervisor = project.start("--heartbeat-file", str(file))
    wait_for(file.exists, 20, "the file")
    first = file.stat().st_mtime_ns
    wait_for(lambda: file.stat().st_mtime_ns > first, 10, "the next beat")
    supervisor.wait_ready()
    supervisor.send(signal.SIGSTOP)
    wait_for(lambda: proc.stat(supervisor.pid).state == "T", 5, "the freeze")  # type: ignore[union-attr]
    frozen = file.stat().st_mtime_ns
    time.sleep(1.5)  # Longer than a round.
    assert file.stat().st_mtime_ns == frozen
    supervisor.send(signal.SIGCONT)
    wait_for(lambda: file.stat().st_mtime_ns > frozen, 10, "the next beat")
    stop_all(project)
    assert not file.exists()


def test_a_heartbeat_file_that_is_a_link_is_not_followed(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    (project.folder / "beat").symlink_to(project.folder / "elsewhere")
    supervisor = project.start("--heartbeat-file", str(project.folder / "beat"))
    supervisor.wait_ready()
    wait_for(lambda: "cannot be written" in supervisor.errors(), 10, "the complaint")
    stop_all(project)
    assert not (project.folder / "elsewhere").exists()
    assert supervisor.errors().count("cannot be written") == 1


def test_a_heartbeat_file_that_is_a_pipe_holds_nobody_up(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    os.mkfifo(project.folder / "beat")
    supervisor = project.start("--heartbeat-file", str(project.folder / "beat"))
    supervisor.wait_ready()
    wait_for(lambda: "cannot be written" in supervisor.errors(), 10, "the complaint")
    stop_all(project)
    assert (project.folder / "beat").is_fifo()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_heartbeat_file_of_another_user_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "beat"
    path.touch(mode=0o666)
    os.chown(path, 65534, -1)
    os.utime(path, (1, 1))
    file = HeartbeatFile(path)
    file.touch()
    file.remove()
    assert path.stat().st_mtime == 1


def test_the_check_believes_only_a_present_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(path: Path) -> str:
        status = main(["health", "--heartbeat-file", str(path)])
        said = capsys.readouterr().err
        assert bool(said) == bool(status)
        return said

    beat, link, pipe = (tmp_path / name for name in ("beat", "link", "pipe"))
    beat.touch()
    link.symlink_to(beat)
    os.mkfifo(pipe)
    assert check(beat) == ""
    assert "is not a regular file" in check(link)
    assert "is not a regular file" in check(pipe)
    ahead = time.time() + 3600
    os.utime(beat, (ahead, ahead))
    assert "in the future" in check(beat)
    os.utime(beat)
    monkeypatch.setattr(os, "geteuid", lambda: beat.stat().st_uid + 1000)
    assert "belongs to the user with the id" in check(beat)


class ServiceManager:
    """The receiving end of systemd's protocol."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(0.1)
        self.messages: list[list[str]] = []

    def wait(self, line: str, after: int = 0, seconds: float = 30.0) -> int:
        """Return the number of the first message with that line."""

        def found() -> int | None:
            with suppress(TimeoutError):
                self.messages.append(self._socket.recv(4096).decode().splitlines())
            for number, message in enumerate(self.messages[after:], after):
                if line in message:
                    return number + 1
            return None

        number = wait_for(found, seconds, f"{line} in {self.messages}")
        assert number is not None
        return number

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def service_manager(tmp_path: Path) -> Iterator[ServiceManager]:
    manager = ServiceManager(tmp_path / "notify")
    yield manager
    manager.close()


def start_as_service(
    make_project: MakeProject, manager: ServiceManager, **options: object
) -> Supervisor:
    project = make_project(queue(processes=1, **options), files={"deployed.py": "VERSION = 1"})
    env = ["env", f"NOTIFY_SOCKET={manager.path}", "WATCHDOG_USEC=30000000"]
    return project.start(under=env)


def test_systemd_is_told(make_project: MakeProject, service_manager: ServiceManager) -> None:
    modules = ["tests.faultapp.versioned"]
    supervisor = start_as_service(make_project, service_manager, task_modules=modules)
    ready = service_manager.wait("READY=1")
    service_manager.wait("STATUS=2 of 2 processes at work")
    beat = service_manager.wait("WATCHDOG=1", ready)
    service_manager.wait("WATCHDOG=1", beat)
    supervisor.send(signal.SIGHUP)
    reloading = service_manager.wait("RELOADING=1", beat)
    told = service_manager.messages[reloading - 1]
    assert told[1].startswith("MONOTONIC_USEC=")
    again = service_manager.wait("READY=1", reloading)
    deployed = supervisor.project.folder / "deployed.py"
    deployed.write_text("VERSION =")
    supervisor.send(signal.SIGHUP)
    refused = service_manager.wait("READY=1", service_manager.wait("RELOADING=1", again))
    supervisor.send(signal.SIGTERM)
    service_manager.wait("STOPPING=1", refused)
    assert supervisor.wait_exit() == 0


def test_a_pulse_ages() -> None:
    heartbeat = SharedHeartbeat()
    heartbeat.beat(3, 2, is_stopping=False)
    first = heartbeat.read()
    assert (first.wanted, first.in_place, first.is_stopping) == (3, 2, False)
    assert 0 <= first.age < 5
    wait_for(lambda: heartbeat.read().age > first.age, 5, "another age")
    heartbeat.beat(3, 3, is_stopping=True)
    assert heartbeat.read().is_stopping
