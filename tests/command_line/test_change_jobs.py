"""``retry``, ``discard``, ``cancel`` and ``run-now``."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from steady_queue_core import task
from steady_queue_core.command_line import batched, progress
from steady_queue_core.command_line.job_acts import Retry
from steady_queue_core.dialects.database import Database
from steady_queue_core.listings import selection as selecting
from steady_queue_core.models import (
    BlockedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)

from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import tasks
from ..test_cli import steady_queue
from .invoking import environment, invoke, on_two_databases


@task
def send(what: int = 0) -> None:
    """Do nothing."""


class Keyboard(io.StringIO):
    """A terminal at which somebody types an answer."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def jobs(using: str, settings: Any) -> Jobs:
    settings.TASKS = tasks(using)
    return Jobs(using)


@on_every_database
def test_failed_jobs_are_retried(using: str, jobs: Jobs) -> None:
    first, second, third = jobs.failed(3)
    assert invoke("retry", first).out == f"Job {first}: retried.\n"
    assert jobs.ids(ReadyExecution) == [first]
    told = invoke("retry", "--all", "--json").json
    assert (told["action"], told["count"], told["dry_run"]) == ("retry", 2, False)
    assert jobs.ids(ReadyExecution) == [first, second, third]
    assert invoke("retry", "--all").out == "Retried 0 jobs.\n"


@on_every_database
def test_jobs_that_are_chosen_are_discarded(using: str, jobs: Jobs) -> None:
    failed = jobs.failed(2, queue_name="mail")
    waiting, others = jobs.ready(3, queue_name="mail"), jobs.ready(2)
    assert invoke("discard", "--queue", "mail", "--state", "ready", "--yes").out == (
        "Discarded 3 jobs.\n"
    )
    assert jobs.ids(Job) == sorted(failed + others)
    assert waiting
    assert invoke("discard", "--error", "ValueError", "--yes").out == "Discarded 2 jobs.\n"
    assert jobs.ids(Job) == others
    assert invoke("discard", others[0], "--yes").out == f"Job {others[0]}: discarded.\n"
    assert jobs.ids(Job) == others[1:]


@on_every_database
def test_jobs_are_cancelled_and_run_now(using: str, jobs: Jobs) -> None:
    later = [int(send.using(run_after=timedelta(hours=1)).enqueue().id) for _ in range(3)]
    assert invoke("run-now", later[0]).out == f"Job {later[0]}: dispatched.\n"
    assert jobs.ids(ReadyExecution) == later[:1]
    assert invoke("run-now", "--task", send.module_path).out == "Dispatched 2 jobs.\n"
    assert jobs.ids(ScheduledExecution) == []
    [claim] = jobs.claim(1)
    assert invoke("cancel", later[1]).out == f"Job {later[1]}: cancelled.\n"
    assert invoke("cancel", "--all", "--yes").out == "Cancelled 2 jobs.\n"
    assert jobs.ids(FailedExecution) == later[1:]
    assert jobs.all.get(pk=claim.job_id).is_cancelled
    assert jobs.ids(BlockedExecution) == []


@on_every_database
def test_what_does_not_apply_is_left_alone_and_named(using: str, jobs: Jobs) -> None:
    [failed], [ready] = jobs.failed(), jobs.ready()
    told = invoke("retry", failed, ready, 4711, "--json")
    assert told.code == 4
    assert told.json["jobs"] == [failed]
    assert told.json["problems"] == [
        "There is no job 4711.",
        f"Job {ready} cannot be retried: it is ready.",
    ]
    assert invoke("retry", ready).code == 1
    assert jobs.ids(ReadyExecution) == sorted([failed, ready])


@on_every_database
def test_a_dry_run_changes_nothing(using: str, jobs: Jobs) -> None:
    failed = jobs.failed(3)
    assert invoke("discard", "--all", "--dry-run").out == "3 jobs would be discarded.\n"
    assert invoke("retry", failed[0], "--dry-run").out == f"Job {failed[0]}: would be retried.\n"
    told = invoke("discard", "--all", "--dry-run", "--json").json
    assert (told["count"], told["exact"], told["dry_run"]) == (3, True, True)
    assert jobs.ids(FailedExecution) == failed


@pytest.mark.django_db
def test_what_cannot_be_undone_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Jobs("default").failed(2)
    for arguments in (["--all"], failed):
        told = invoke("discard", *arguments, "--json")
        assert told.code == 2
        assert told.json["problems"] == [
            "Discard 2 jobs? This cannot be undone. Nobody can be asked: say --yes, or --dry-run."
        ]
        for answer in ("", "n\n", "what\n"):
            monkeypatch.setattr(sys, "stdin", Keyboard(answer))
            told = invoke("discard", *arguments)
            assert told.code == 1
            assert told.err == (
                "Discard 2 jobs? This cannot be undone. [y/N]\nNothing was changed.\n"
            )
        monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert FailedExecution.objects.count() == 2
    monkeypatch.setattr(sys, "stdin", Keyboard(" Yes \n"))
    assert invoke("discard", "--all").out == "Discarded 2 jobs.\n"
    assert FailedExecution.objects.count() == 0
    assert invoke("cancel", "--all").out == "Cancelled 0 jobs.\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    send.enqueue()
    assert invoke("cancel", "--all").code == 2


@pytest.mark.django_db
def test_jobs_have_to_be_chosen_in_one_way() -> None:
    for arguments in ([], ["1", "--all"], ["1", "--queue", "mail"], ["--state", "failed", "2"]):
        told = invoke("retry", *arguments)
        assert (told.code, told.err.partition(":")[0]) == (2, "Say which jobs")
    assert invoke("discard", "--error", "KeyError", "--state", "ready", "--yes").code == 2


@pytest.mark.django_db
def test_jobs_are_changed_in_batches_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs("default")
    jobs.failed(5)
    sizes: list[int] = []
    original = Retry.on_many

    def note(act: Retry, chosen: Any) -> int:
        sizes.append(chosen.count())
        return original(act, chosen)

    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    monkeypatch.setattr(Retry, "on_many", note)
    told = invoke("retry", "--all", "--batch-size", 2)
    assert sizes == [2, 2, 1]
    assert told.err.splitlines() == ["Retried: 2 of 5", "Retried: 4 of 5", "Retried: 5 of 5"]
    jobs.claim()


def selection(using: str = "default") -> selecting.Selection:
    from steady_queue_core.command_line.job_filter import listing_of

    return selecting.Selection.until_now(
        using, [listing_of({}, using, Retry().states[0])], by_id=Retry.reorders
    )


class Quiet:
    """A context that notes what it is told."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.stderr = io.StringIO()

    def note(self, line: str) -> None:
        self.noted.append(line)


@pytest.mark.django_db
def test_jobs_are_taken_in_the_order_of_their_state() -> None:
    jobs = Jobs("default")
    older, newer = jobs.failed(2)
    assert [each for part in selection().parts(10) for each in part] == [newer, older]


@pytest.mark.django_db
def test_jobs_that_come_later_are_not_followed_without_end() -> None:
    jobs = Jobs("default")
    jobs.failed(2)

    def do(chosen: Any) -> int:
        if jobs.all.count() < 10:
            jobs.failed(1)
        return int(chosen.count())

    context: Any = Quiet()
    outcome = batched.apply(context, "Retried", do, selection(), 1)
    assert outcome.changed == 2


@pytest.mark.django_db
def test_a_batch_is_tried_again_while_others_hold_its_locks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Jobs("default").failed(1)
    monkeypatch.setattr(selecting, "PAUSE", 0.0)
    monkeypatch.setattr(Database, "is_contention", lambda self, error: "locked" in str(error))
    tries: list[str] = []

    def do(chosen: Any) -> int:
        tries.append("x")
        if len(tries) < 3:
            raise OperationalError("database is locked")
        return 1

    context: Any = Quiet()
    assert batched.apply(context, "Retried", do, selection(), 10).changed == 1
    assert len(tries) == 3

    def break_down(chosen: Any) -> int:
        raise OperationalError("gone")

    with pytest.raises(OperationalError, match="gone"):
        batched.apply(context, "Retried", break_down, selection(), 10)


@pytest.mark.django_db
def test_ctrl_c_ends_it_between_two_batches() -> None:
    Jobs("default").failed(5)

    def do(chosen: Any) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return int(chosen.count())  # Not reached if the signal interrupted the batch.

    context: Any = Quiet()
    before = signal.getsignal(signal.SIGINT)
    outcome = batched.apply(context, "Retried", do, selection(), 2)
    assert (outcome.changed, outcome.was_interrupted) == (2, True)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_says_how_far_it_came(workspace: Path) -> None:
    jobs = Jobs("default")
    jobs.failed(300)
    file = connections["default"].settings_dict["NAME"]
    code = (
        "from steady_queue_core.command_line.job_acts import Retry\n"
        "import os, signal, sys\n"
        "do = Retry.on_many\n"
        "def once(act, jobs):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return do(act, jobs)\n"
        "Retry.on_many = once\n"
        "from django.core.management import call_command\n"
        "call_command('steady_queue', 'retry', '--all', '--batch-size', '100', '--json')\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup()\n{code}"],
        cwd=workspace, env=environment(file), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert told.returncode == 130
    assert "Retried 100 jobs, then interrupted: there may be more." in told.stderr
    assert '"count": 100' in told.stdout
    assert FailedExecution.objects.count() == 200


@pytest.mark.django_db
def test_a_bar_is_drawn_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    Jobs("default").failed(2)
    drawn: list[Any] = []

    class Bar:
        def start(self) -> None:
            drawn.append("start")

        def add_task(self, words: str, total: int | None) -> int:
            drawn.append((words, total))
            return 1

        def update(self, task: int, completed: int) -> None:
            drawn.append(completed)

        def stop(self) -> None:
            drawn.append("stop")

    assert hasattr(progress._bar(), "add_task")
    monkeypatch.setattr(progress, "_bar", Bar)
    invoke("retry", "--all")
    assert drawn == []
    Job.objects.all().cancel()
    invoke("retry", "--all", terminal=True)
    assert drawn == ["start", ("Retried", 2), 2, "stop"]


@pytest.mark.django_db(transaction=True)
def test_on_a_real_terminal_the_question_is_answered_and_a_bar_drawn(workspace: Path) -> None:
    Jobs("default").failed(3)
    terminal, screen = os.openpty()
    asking = subprocess.Popen(
        [sys.executable, "-m", "steady_queue_core", "discard", "--all"],
        cwd=workspace,
        env=environment(connections["default"].settings_dict["NAME"]) | {"TERM": "xterm"},
        stdin=screen, stdout=screen, stderr=screen,
    )  # fmt: skip
    os.close(screen)
    shown = b""
    try:
        while b"Discard 3 jobs? This cannot be undone. [y/N]" not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"y\n")
        with suppress(OSError):  # What Linux says of a terminal that nobody has open.
            while part := os.read(terminal, 4096):
                shown += part
        assert asking.wait(60) == 0
    finally:
        os.close(terminal)
    assert b"3/3" in shown
    assert b"Discarded 3 jobs." in shown
    assert Job.objects.count() == 0


@on_two_databases
def test_of_several_databases_one_has_to_be_chosen(other: str, settings: Any) -> None:
    one, another = tasks("default"), tasks(other)
    settings.TASKS = one | {"archive": another["default"]}
    [here], [there] = Jobs("default").failed(), Jobs(other).failed()
    for name in ("retry", "cancel", "discard", "run-now"):
        told = invoke(name, "--all", "--yes")
        assert told.code == 2
        assert "Choose one with --backend archive|default" in told.err
    assert invoke("retry", "--all", "--backend", "archive").out == "Retried 1 job.\n"
    assert FailedExecution.objects.using(other).count() == 0
    assert FailedExecution.objects.get().pk == here
    assert there


def test_the_console_script_cancels_by_the_subcommand(tmp_path: Path) -> None:
    (tmp_path / "manage.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    told = steady_queue(tmp_path, "cancel", "17", "--dry-run").stdout
    assert told == "steady_queue cancel 17 --dry-run\n"
