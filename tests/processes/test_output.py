"""What the processes write, and to whom."""

from __future__ import annotations

import re

import pytest

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue

#: A message that would be another record, and clear the screen.
HOSTILE = "x\n2026-11-22 00:00:00,000 CRITICAL 1 forged\x1b[2J\x9b"
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?P<level>[A-Z]+) +\d+ (?P<message>.*)")
#: Logs in which nothing is said of the queue, or of tasks.
SILENT = "LOGGING = {'version': 1, 'disable_existing_loggers': False, 'loggers': {}}\n"
RAISES = """
import logging

class Broken(logging.Handler):
    def emit(self, record):
        raise ValueError("I/O operation on closed file")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"broken": {"()": Broken}},
    "root": {"handlers": ["broken"], "level": "DEBUG"},
}
"""


def project_with(make_project: MakeProject, extra: str) -> Project:
    settings = queue(processes=1, threads=1, task_modules=["tests.faultapp.rude"])
    return make_project(settings, extra=f"DEBUG = False\n{extra}")


def states(project: Project) -> list[str]:
    return [project.state_of(job_id) for job_id in project.enqueued]


@pytest.mark.parametrize("extra", ["LOGGING = {}\n", SILENT], ids=["no-logging", "other-logging"])
@pytest.mark.parametrize("form", [(), ("--log-format", "text")], ids=["plain", "text"])
def test_a_failed_task_is_told_on_one_record_that_nothing_forges(
    make_project: MakeProject, extra: str, form: tuple[str, ...]
) -> None:
    project = project_with(make_project, extra)
    [job] = project.enqueue("rude:fail_with", [HOSTILE])
    drained = project.start("--drain", *form)
    assert drained.wait_exit(30) == 0
    lines = drained.errors().split("\n")
    records = [found for found in map(RECORD.fullmatch, lines) if found]
    told = [each["message"] for each in records if each["level"] == "ERROR"]
    assert told == [f"Task id={job} path=tests.faultapp.rude.fail_with state=FAILED"]
    assert not any("forged" in each[0] for each in records)
    assert "    2026-11-22 00:00:00,000 CRITICAL 1 forged\\x1b[2J\\x9b" in lines
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("logger", ["django.tasks", "django_tasks", "django", "root"])
def test_a_project_that_configures_these_loggers_hears_it_once(
    make_project: MakeProject, logger: str
) -> None:
    extra = f"""
LOGGING = {{
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {{"file": {{"class": "logging.FileHandler", "filename": BASE_DIR / "own.log"}}}},
    "loggers": {{name: {{"handlers": ["file"]}} for name in [{logger!r}] if name != "root"}},
    "root": {{"handlers": ["file"] if {logger!r} == "root" else []}},
}}
"""
    project = project_with(make_project, extra)
    project.enqueue("rude:fail_with", ["on purpose"])
    drained = project.start("--drain")
    assert drained.wait_exit(30) == 0
    own = (project.folder / "own.log").read_text()
    assert drained.errors().count("state=FAILED") + own.count("state=FAILED") == 1


@pytest.mark.parametrize("extra", ["", RAISES], ids=["closed", "raises"])
def test_a_log_that_cannot_be_written_fails_no_job(make_project: MakeProject, extra: str) -> None:
    project = project_with(make_project, extra)
    if not extra:
        project.enqueue("rude:close_output")
    good = project.enqueue("work", *[[0.0]] * 10) + project.enqueue("awork", *[[0.0]] * 10)
    bad = project.enqueue("rude:fail_with", ["on purpose"])
    again = project.enqueue("flaky", [1])
    supervisor = project.start()
    project.wait_done(30)
    assert {project.state_of(job_id) for job_id in [*good, *again]} == {"finished"}
    assert {len(project.attempts_at(job_id)) for job_id in good} == {1}
    assert [project.state_of(job_id) for job_id in bad] == ["failed"]
    assert supervisor.stop() == 0
    assert project.count("processes") == project.count("claimed_executions") == 0
