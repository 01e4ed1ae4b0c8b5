"""The thread mode where the system has none of what only POSIX systems have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .conftest import MakeProject
from .scenarios import queue

#: What Windows lacks, of what the queue uses elsewhere.
LESS = """
import fcntl, os, select, subprocess, selectors, signal, sys, time

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "resource"):
            raise ModuleNotFoundError(name)

for name in ("fork", "geteuid", "getuid", "posix_fallocate", "register_at_fork", "O_NOFOLLOW",
             "pread", "pwrite"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGQUIT", "SIGCHLD", "SIGKILL", "SIGSTOP", "pthread_sigmask"):
    delattr(signal, name)
del select.poll, selectors.PollSelector, sys.modules["fcntl"]
for name in ("clock_gettime", "CLOCK_BOOTTIME"):
    delattr(time, name)
sys.meta_path.insert(0, Missing())

from django.core.management import execute_from_command_line

execute_from_command_line(["manage.py", "steady_queue", *sys.argv[1:]])
"""


@pytest.mark.thorough
def test_the_queue_runs_in_threads_where_nothing_can_be_forked(make_project: MakeProject) -> None:
    project = make_project(queue(processes=2))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", LESS, "--drain", *arguments],
            cwd=project.folder, env=project.environment(), capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip

    jobs = [*project.enqueue("work", *[[0.01]] * 5), *project.enqueue("awork")]
    for refused, reason in (
        (("--mode", "fork"), "this system cannot fork processes"),
        (("--pidfile", "queue.pid"), "this system has no locks on files"),
    ):
        said = run(*refused)
        assert said.returncode == 1
        assert reason in said.stderr
    done = run()
    assert done.returncode == 0, done.stderr
    assert {project.state_of(job_id) for job_id in jobs} == {"finished"}
    assert len({attempt.pid for attempt in project.attempts()} | {os.getpid()}) == 2
    assert project.count("processes") == 0
