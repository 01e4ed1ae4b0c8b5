"""The checker finds what is wrong with broken histories, and nothing in sound ones."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from .checker import Attempt, JobRow, Kill, Snapshot, check, read_effects, take_snapshot

SECOND = 10**9
WORKER, OTHER = 100, 200


def finished(token: int = 1, **fields: Any) -> JobRow:
    values = {"return_value": str(token), "attempts": 1} | fields
    return JobRow(("finished",), token, **values)


def failed(error: str = "ProcessExitError") -> JobRow:
    return JobRow(("failed",), 1, error=error)


def ran(job_id: int = 1, token: int = 1, pid: int = WORKER, start: int = 0) -> Attempt:
    return Attempt(job_id, token, pid, start * SECOND, start * SECOND + SECOND // 10)


def cut(job_id: int = 1, token: int = 1, pid: int = WORKER, start: int = 0) -> Attempt:
    return Attempt(job_id, token, pid, start * SECOND)


def kill(pid: int = WORKER, at: int = 1, signum: int = signal.SIGKILL) -> Kill:
    return Kill(pid, at * SECOND, at * SECOND + 1000, signum)


def verdict(row: JobRow | None, attempts: list[Attempt], *kills: Kill, **options: Any) -> str:
    jobs = {} if row is None else {1: row}
    complaints = check([1], attempts, Snapshot(jobs), kills, **options)
    return "; ".join(complaints)


def test_a_job_that_ran_once_and_finished_is_sound() -> None:
    assert verdict(finished(), [ran()]) == ""


def test_a_job_that_failed_while_its_worker_was_killed_is_sound() -> None:
    assert verdict(failed(), [cut()], kill()) == ""


def test_a_job_that_ran_again_after_a_kill_is_sound_if_it_may() -> None:
    history = [cut(), ran(token=2, pid=OTHER, start=2)]
    assert verdict(finished(2, max_attempts=2), history, kill()) == ""


def test_a_lost_job_is_found() -> None:
    assert "lost" in verdict(None, [])


def test_a_job_that_never_ended_is_found() -> None:
    assert "not ended: it is claimed" in verdict(JobRow(("claimed",)), [cut()], kill())


def test_a_job_in_two_states_is_found() -> None:
    assert "2 states" in verdict(JobRow(("ready", "finished"), 1), [ran()])


def test_a_job_in_no_state_is_found() -> None:
    assert "0 states" in verdict(JobRow(()), [])


def test_a_job_that_nobody_enqueued_is_found() -> None:
    assert check([], [], Snapshot({7: finished()})) == ["job 7 was never enqueued"]
    assert check([], [], Snapshot(strays=(7,))) == ["job 7 was never enqueued"]


def test_a_failure_without_a_kill_is_found() -> None:
    assert "was not killed then" in verdict(failed(), [ran()])
    assert "was not killed then" in verdict(failed(), [cut()], kill(OTHER))


def test_a_failure_long_before_the_kill_is_found() -> None:
    assert "was not killed then" in verdict(failed(), [ran()], kill(at=9))


def test_a_job_that_was_stopped_before_its_first_line_may_fail() -> None:
    """It leaves that line as soon as it goes on, and not later."""
    stopped, resumed = kill(signum=signal.SIGSTOP, at=1), kill(signum=signal.SIGCONT, at=5)
    later = kill(signum=signal.SIGCONT, at=9)
    assert (
        verdict(failed(), [ran(start=5)._replace(started_at=5 * SECOND + 2000)], stopped, resumed)
        == ""
    )
    for history, signals in [
        (ran(start=4), [stopped, resumed]),
        (ran(start=6), [stopped, resumed]),
        (ran(start=9), [stopped, resumed, later]),
        (ran(start=5), [stopped]),
    ]:
        assert "was not killed then" in verdict(failed(), [history], *signals)


def test_a_failure_of_a_job_that_had_only_been_claimed_is_found() -> None:
    assert "never started" in verdict(failed(), [], kill())
    # It may have been about to log its start; but then nothing else ran in that thread.
    assert verdict(failed(), [], kill(), threads=1) == ""
    jobs = {1: failed(), 2: failed()}
    for history in ([], [cut(2)]):
        complaints = check([1, 2], history, Snapshot(jobs), [kill()], threads=1)
        assert "job 1 failed with ProcessExitError and had never started" in complaints


def test_a_task_that_vanished_without_a_kill_is_found() -> None:
    assert "never ended" in verdict(finished(), [cut()])


def test_a_task_that_fails_by_itself_may_fail() -> None:
    assert verdict(failed("RuntimeError"), [ran()], own_failures=[1]) == ""


def test_a_repetition_without_a_kill_is_found() -> None:
    history = [ran(), ran(token=2, start=2)]
    assert "ran again although" in verdict(finished(2, max_attempts=2), history)


def test_a_repetition_before_the_kill_is_found() -> None:
    history = [cut(), ran(token=2, pid=OTHER, start=1)]
    assert "ran again before" in verdict(finished(2, max_attempts=2), history, kill(at=2))


def test_a_repetition_beyond_the_attempts_is_found() -> None:
    history = [cut(), ran(token=2, pid=OTHER, start=2)]
    assert "2 times of 1 allowed" in verdict(finished(2), history, kill())


def test_a_start_under_an_old_token_is_found() -> None:
    history = [ran(token=2, pid=OTHER, start=2), ran(token=1, start=4)]
    stopped = kill(signum=signal.SIGSTOP)
    assert "token 1 after 2" in verdict(finished(2, max_attempts=2), history, stopped)


def test_the_same_claim_run_twice_is_found() -> None:
    text = "start 1 1 100 5\nend 1 1 100 6\nstart 1 1 100 7\nend 1 1 100 8\n"
    assert "token 1 after 1" in verdict(finished(), read_effects(text))


def test_an_outcome_of_a_claim_that_was_lost_is_found() -> None:
    history = [ran(), ran(token=2, pid=OTHER, start=2)]
    row = finished(2, return_value="1", max_attempts=2)
    stopped = kill(signum=signal.SIGSTOP, at=0)
    assert "with the result of the attempt 1" in verdict(row, history, stopped)


def test_a_finish_that_no_task_has_brought_about_is_found() -> None:
    assert "ended no task" in verdict(finished(), [])
    assert "ended no task" in verdict(finished(2, max_attempts=2), [ran()])


def test_a_dead_process_that_is_still_registered_is_found() -> None:
    snapshot = Snapshot({}, processes=(WORKER, OTHER))
    assert check([], [], snapshot, living=[OTHER]) == [
        f"process {WORKER} is dead and still registered"
    ]


def test_a_kill_that_cost_more_than_was_running_is_found() -> None:
    jobs = {number: failed() for number in (1, 2, 3)}
    history = [cut(number) for number in jobs]
    arguments = (list(jobs), history, Snapshot(jobs), [kill()])
    assert check(*arguments, threads=3) == []
    assert "cost 3 jobs of 2 threads" in "; ".join(check(*arguments, threads=2))


def test_a_kill_that_cost_outcomes_that_were_not_stored_yet_is_found() -> None:
    jobs = {1: failed(), 2: failed()}
    history = [ran(1, start=1), cut(2, start=1)]
    arguments = ([1, 2], history, Snapshot(jobs), [kill(at=1)])
    assert "cost 2 jobs of 1 threads" in "; ".join(check(*arguments, threads=1))


def test_a_snapshot_reads_every_state(template: Path) -> None:
    states = ("ready", "scheduled", "failed", "claimed")
    with closing(sqlite3.connect(template)) as source, closing(sqlite3.connect(":memory:")) as db:
        source.backup(db)
        db.isolation_level = None
        for number, state in enumerate(("finished", *states, "none"), 1):
            end = "2024-01-01" if state in ("finished", "failed") else None
            db.execute(
                "INSERT INTO steady_queue_jobs (id, queue_name, task_path, backend_name, rank, "
                "arguments, max_attempts, attempts, token, enqueued_at, finished_at) "
                "VALUES (?, 'q', 't', 'default', 0, '', 1, 0, 0, '2024-01-01', ?)",
                (number, end),
            )
        queued = "(job_id, queue_name, rank, token, created_at"
        values = "'q', 0, 0, '2024-01-01'"
        db.execute(f"INSERT INTO steady_queue_ready_executions {queued}) VALUES (2, {values})")
        db.execute(f"INSERT INTO steady_queue_ready_executions {queued}) VALUES (99, {values})")
        db.execute(
            f"INSERT INTO steady_queue_scheduled_executions {queued}, due_at) "
            f"VALUES (3, {values}, '2024-01-02')"
        )
        db.execute(
            "INSERT INTO steady_queue_failed_executions "
            "(created_at, job_id, exception_class, message) "
            "VALUES ('2024-01-01', 4, 'a.b.SomeError', 'text')"
        )
        db.execute(
            f"INSERT INTO steady_queue_claimed_executions {queued}, process_id) "
            f"VALUES (5, {values}, 1)"
        )
        snapshot = take_snapshot(db.execute)
    found = {number: row.states for number, row in snapshot.jobs.items()}
    assert found == {
        1: ("finished",),
        2: ("ready",),
        3: ("scheduled",),
        4: ("failed",),
        5: ("claimed",),
        6: (),
    }
    assert snapshot.jobs[4].error == "SomeError"
    assert snapshot.strays == (99,)
