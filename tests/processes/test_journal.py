"""What a worker notes of its jobs outlives it, and is believed."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from steady_queue_core.dialects import Ending, Outcome
from steady_queue_core.processes.base import journal
from steady_queue_core.processes.base.journal import RunJournal
from steady_queue_core.processes.base.journal_reader import (
    ENTRY_SIZE,
    FinishedEntry,
    JournalSnapshot,
    read_journal,
)
from steady_queue_core.processes.base.registration import new_name

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, stop_all, wait_gone, work_with_a_backlog
from .waiting import wait_for

TOKEN = 7
BEGAN = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


@pytest.fixture
def own(tmp_path: Path) -> RunJournal:
    return create(tmp_path)


def create(folder: Path) -> RunJournal:
    made = RunJournal.create(new_name("worker"), 3, folder)
    assert made.path is not None
    return made


def outcome(job_id: int, return_value: str = "[1]", ending: Ending = Ending.FINISHED) -> Outcome:
    return Outcome(
        ending,
        job_id,
        token=TOKEN,
        queue_name="default",
        rank=0,
        last_attempted_at=BEGAN,
        return_value=return_value,
    )


def test_started_jobs_are_running_until_they_are_cleared(own: RunJournal) -> None:
    for job_id in (11, 12, 13):
        own.start(job_id, TOKEN)
    own.clear(12, TOKEN)
    assert own.snapshot().running == {11, 13}
    own.start(14, TOKEN)
    left = read_journal(own.path)
    assert left is not None
    assert left.running == {11, 13, 14}


def test_whoever_takes_a_journal_over_needs_no_file(own: RunJournal) -> None:
    assert own.path is not None
    own.start(11, TOKEN)
    own.path.unlink()
    adopted = RunJournal.adopt(own.open(), own.path)
    own.start(12, TOKEN)
    again = RunJournal.adopt(adopted.open(), own.path)
    own.clear(11, TOKEN)
    assert again.snapshot().running == adopted.snapshot().running == {12}
    for each in (own, adopted, again):
        each.close()


def test_an_ended_job_is_not_running_and_its_outcome_is_kept(own: RunJournal) -> None:
    own.start(11, TOKEN)
    own.start(12, TOKEN)
    own.end(outcome(11, '{"text":"a b  c"}'))
    left = read_journal(own.path)
    assert left is not None
    assert left.running == {12}
    assert left.finished == {11: FinishedEntry(TOKEN, BEGAN, True, '{"text":"a b  c"}')}


def test_a_slot_keeps_nothing_of_the_job_before(own: RunJournal) -> None:
    own.start(11, TOKEN)
    own.end(outcome(11))
    own.clear(11, TOKEN)
    assert own.snapshot() == JournalSnapshot()
    own.start(12, TOKEN)
    assert own.snapshot().running == {12}
    assert not own.snapshot().finished


def test_a_job_of_the_same_id_from_an_earlier_life_of_the_database_has_a_slot_of_its_own(
    own: RunJournal,
) -> None:
    own.start(11, 3)
    own.start(11, TOKEN)
    own.clear(11, 3)
    assert own.snapshot().running == {11}
    own.end(outcome(11))
    assert own.snapshot().finished[11].token == TOKEN
    own.clear(11, TOKEN)
    assert own.snapshot() == JournalSnapshot()


@pytest.mark.parametrize(
    "noted",
    [
        pytest.param(outcome(11, "x" * ENTRY_SIZE), id="too-long"),
        pytest.param(outcome(11, ending=Ending.RETRIED), id="not-finished"),
    ],
)
def test_an_outcome_that_is_not_noted_leaves_its_job_running(
    own: RunJournal, noted: Outcome
) -> None:
    own.start(11, TOKEN)
    own.end(noted)
    assert own.snapshot().running == {11}


def test_what_a_process_broke_off_in_good_order_was_not_running(own: RunJournal) -> None:
    own.start(11, TOKEN)
    own.start(12, TOKEN)
    own.end(outcome(12))
    own.mark_clean_exit()
    left = read_journal(own.path)
    assert left is not None
    assert left.running == frozenset()
    assert set(left.finished) == {12}


def test_only_a_journal_is_read(own: RunJournal, tmp_path: Path) -> None:
    """The path is in a row of the database, which may say anything."""
    assert own.path is not None
    link = tmp_path / f"{new_name('worker')}.journal"
    link.symlink_to(own.path)
    pipe = tmp_path / f"{new_name('worker')}.journal"
    os.mkfifo(pipe)
    copy = tmp_path / "notes.txt"
    copy.write_bytes(own.path.read_bytes())
    nul = tmp_path / "worker\0"
    for path in (None, link, pipe, copy, nul, tmp_path / "missing.journal"):
        assert read_journal(path) is None


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    private, shared = tmp_path / "private", tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert journal.folder_for(private) == private
    assert journal.folder_for(shared) is None
    assert journal.folder_for(tmp_path / "file" / "below") == tmp_path / "file" / "below"
    (tmp_path / "plain").touch()
    assert journal.folder_for(tmp_path / "plain") is None
    with caplog.at_level(logging.WARNING):
        journal.prepare(private, 0.0)
        assert not caplog.records
        journal.prepare(tmp_path / "plain", 0.0)
    [record] = caplog.records
    assert "STEADY_QUEUE['state_directory']" in record.getMessage()


def test_the_state_directory_of_a_unit_is_used_unless_another_one_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    monkeypatch.setenv("STATE_DIRECTORY", f"{state}:{tmp_path / 'other'}")
    folder = state / "steady-queue-journals"
    assert journal.folder_for(None) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert journal.folder_for(tmp_path / "configured") == tmp_path / "configured"
    monkeypatch.setenv("STATE_DIRECTORY", "relative")
    found = journal.folder_for(None)
    assert found is not None
    assert found.is_relative_to(tempfile.gettempdir())


def test_without_a_folder_a_journal_serves_the_supervisor(tmp_path: Path) -> None:
    made = RunJournal.create(new_name("worker"), 1, None)
    made.start(11, TOKEN)
    assert made.path is None
    assert made.snapshot().running == {11}


def test_abandoned_journals_of_dead_processes_are_swept_and_others_stay(tmp_path: Path) -> None:
    mine, dead = create(tmp_path), create(tmp_path)
    mine.set_owner(os.getpid())
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    dead.set_owner(pid)
    journal.sweep(tmp_path, older_than=0.0)
    assert read_journal(dead.path) is not None
    journal.sweep(tmp_path, older_than=datetime.now(UTC).timestamp() + 60)
    assert read_journal(dead.path) is None
    assert read_journal(mine.path) is not None


def journal_of(project: Project, pid: int) -> Path:
    [(metadata,)] = project.query("SELECT metadata FROM steady_queue_processes WHERE pid = ?", pid)
    return Path(json.loads(metadata)["journal"])


def test_an_outcome_that_a_killed_worker_did_not_come_to_store_is_stored(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    path = journal_of(project, worker)
    [job] = project.enqueue("work", [0.3])
    project.wait_started(job)

    def ended() -> bool:
        left = read_journal(path)
        return left is not None and job in left.finished

    with project.write_lock():
        wait_for(ended, 10, "the outcome in the worker's journal")
        supervisor.send(signal.SIGKILL, worker)
        wait_gone([worker], 10)
    project.wait_done(20)
    stop_all(project)
    assert project.state_of(job) == "finished"
    assert len(project.attempts_at(job)) == 1
    assert not path.exists()


def test_journals_are_found_whatever_the_next_supervisor_takes_for_temporary(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = make_project(queue(processes=1, threads=1))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    running = work_with_a_backlog(project, worker)
    supervisor.send_tree(signal.SIGKILL)
    supervisor.wait_exit()
    monkeypatch.delenv("TMPDIR")
    project.start().wait_ready(1)
    project.wait_done(30)
    stop_all(project)
    failed = project.query("SELECT job_id FROM steady_queue_failed_executions")
    assert set(failed) <= {(running,)}
