"""Where the system hides what other users run, nobody is taken for dead on that account."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from steady_queue_core.models import Process
from steady_queue_core.models import process as processes
from steady_queue_core.processes.base import system
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.registration import ProcessLocation, new_name
from steady_queue_core.processes.supervisor.pruning import Pruner
from steady_queue_core.processes.supervisor.recovery import Rescuer

from . import proc
from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import queue, stop_all, wait_pruned
from .waiting import wait_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when its standard input does."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_what_is_hidden_has_not_ended(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    born = system.start_time(child.pid)
    assert born is not None
    monkeypatch.setattr(system, "PROC", str(tmp_path))
    assert system.start_time(child.pid) is None
    assert not system.has_ended(child.pid, born)
    child.kill()
    child.wait()
    assert system.has_ended(child.pid, born)


def test_what_is_to_be_seen_has_ended_as_a_zombie_or_when_another_has_its_pid(
    child: subprocess.Popen[bytes],
) -> None:
    born = system.start_time(child.pid)
    assert not system.has_ended(child.pid, born)
    assert not system.has_ended(child.pid)
    assert system.has_ended(child.pid, "an earlier time")
    child.kill()
    wait_for(lambda: not proc.alive(child.pid), 10, "its end")
    found = proc.stat(child.pid)
    assert found is not None
    assert found.state == "Z"
    assert system.has_ended(child.pid, born)


NAMED = """
import ctypes
ctypes.CDLL(None).prctl(15, "fünf Körbe süßer Äpfel".encode()[:15], 0, 0, 0)
print(flush=True)
input()
"""


def test_a_name_that_the_system_has_cut_inside_of_a_letter_is_no_matter() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(UnicodeDecodeError):
            Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8")
        born = system.start_time(child.pid)
        assert born is not None
        assert not system.has_ended(child.pid, born)
        assert system.wakeups_of(child.pid, child.pid) is not None
        child.kill()


@pytest.mark.parametrize("pid", [0, 1 << 80])
def test_a_pid_that_no_process_can_have_tells_nothing(pid: int) -> None:
    assert not system.has_ended(pid, "1")


#: A view of the processes in which those of others are hidden, and the right to read our files.
HIDING = 'mount -t proc -o hidepid=2 proc /proc && exec setpriv {} "$@"'
AS_USER = (
    "--reuid {0} --regid {0} --clear-groups --inh-caps +dac_override --ambient-caps +dac_override"
)
USERS = (65534, 33)


def under(user: int) -> list[str]:
    command = HIDING.format(AS_USER.format(user))
    return ["unshare", "--mount", "sh", "-c", command, "sh"]


def can_hide() -> bool:
    """Whether two users can be had who do not see each other."""
    major, minor = platform.release().split(".")[:2]
    # Before 5.8 an option of /proc would be everybody's.
    if not hasattr(os, "geteuid") or os.geteuid() or (int(major), int(minor)) < (5, 8):
        return False
    if not all(map(shutil.which, ("unshare", "setpriv"))):
        return False
    look = subprocess.run(
        [*under(USERS[0]), "test", "!", "-e", "/proc/1"], check=False, capture_output=True
    )
    return look.returncode == 0


def start(project: Project, user: int) -> Supervisor:
    supervisor = project.start(under=under(user))
    supervisor.wait_ready(1)
    return supervisor


@pytest.mark.slow
@pytest.mark.skipif(not can_hide(), reason="no two users who do not see each other")
@pytest.mark.thorough
def test_supervisors_of_two_users_who_cannot_see_each_other_leave_each_other_alone(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("TMPDIR", str(shared))
    project = make_project(queue(processes=1, threads=1))
    first, second = (start(project, user) for user in USERS)
    families = [set(supervisor.children()) for supervisor in (first, second)]
    # Longer than the time between two looks at the others.
    project.enqueue("work", [4.0], [4.0])
    project.wait_done(30)
    assert [row.states for row in project.snapshot().jobs.values()] == [("finished",)] * 2
    for supervisor, children in zip((first, second), families, strict=True):
        assert set(supervisor.children()) == children, project.logs()
        assert "without its supervisor" not in supervisor.errors()
    # What is dead is found all the same, without waiting for its lease.
    first.send_tree(signal.SIGKILL)
    first.wait_exit()
    for pid in [first.pid, *families[0]]:
        wait_pruned(project, pid)
    assert set(second.children()) == families[1]
    stop_all(project)


@pytest.mark.django_db(transaction=True)
def test_a_dead_child_whose_marks_cannot_be_read_is_left_to_its_supervisor_while_that_lives(
    child: subprocess.Popen[bytes],
) -> None:
    here = ProcessLocation(system.host_id(), system.start_time(child.pid), None)
    alive = registered(child.pid, here)
    registered(child.pid, here._replace(birth="an earlier time"), supervisor_id=alive)
    database = QueueDatabase("default")
    pruning = Pruner(database, Rescuer(database), timedelta(minutes=5))
    pruning.prune_exited(())
    assert Process.objects.count() == 2
    child.kill()
    child.wait()
    pruning.prune_exited(())
    assert Process.objects.count() == 0


def registered(pid: int, whereabouts: ProcessLocation, supervisor_id: int | None = None) -> int:
    process = processes.register(
        "default", kind="process", name=new_name("process"), pid=pid, hostname="here",
        supervisor_id=supervisor_id, metadata=json.dumps(whereabouts.as_metadata()),
    )  # fmt: skip
    return process.id
