"""Tasks that go wrong: each fails once, for a reason that one can read, and harms nobody else."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .harness import Project, Supervisor

EXTRA = """
INSTALLED_APPS += ["tests.badapp"]
TASKS["default"]["OPTIONS"] = {"unknown_task_patience": 0}
# What Django logs of failed tasks is not of interest here.
for logger in ("django.tasks", "django_tasks"):
    LOGGING["loggers"][logger] = {"level": "CRITICAL", "propagate": False}
"""
LIMIT = 66_000


@dataclass
class Bad:
    """A job that fails, and what its result must tell."""

    task: str
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    #: The class of the error, and a pattern for its text.
    error: str = "builtins.ValueError"
    says: str = "on purpose"
    #: Columns to change after the job was enqueued.
    row: dict[str, Any] = field(default_factory=dict)


UNREGISTERED = "steady_queue_core.errors.UnregisteredTaskError"
DESERIALIZATION = "steady_queue_core.arguments.errors.DeserializationError"
ARGUMENT = "steady_queue_core.arguments.errors.TaskArgumentError"


def renamed(path: Any, arguments: str = '{"args":[],"kwargs":{}}') -> Bad:
    shown = re.escape(repr(path))
    row = {"task_path": path, "arguments": arguments}
    return Bad("takes_a", [1], {}, UNREGISTERED, rf"Task {shown} is not registered", row)


def damaged(arguments: Any, says: str, task: str = "takes_a") -> Bad:
    return Bad(task, [1], {}, DESERIALIZATION, says, {"arguments": arguments})


#: A set that takes half a minute to build.
COLLIDING = json.dumps(
    {"args": [{"__sq_set__": [(2**61 - 1) * n for n in range(20_000)]}], "kwargs": {}}
)
BAD = {
    "unknown task": renamed("tests.badapp.tasks.gone"),
    "os.system": renamed("os.system", '{"args":["touch executed"],"kwargs":{}}'),
    "unimported module": renamed("tests.badapp.unimported.bomb"),
    "attribute of a task": renamed("tests.badapp.tasks.takes_a.func"),
    "function that is no task": renamed("tests.badapp.tasks._segfault"),
    "empty path": renamed(""),
    "control characters in the path": renamed("a\x1b[31m\nb"),
    "renamed argument": Bad(
        "takes_a", [], {"b": 1}, "builtins.TypeError", r"unexpected keyword argument 'b'"
    ),
    "renamed argument, coroutine": Bad(
        "atakes_a", [], {"b": 1}, "builtins.TypeError", r"unexpected keyword argument 'b'"
    ),
    "extra argument": Bad("takes_a", [1, 2], {}, "builtins.TypeError", "takes 1 positional"),
    "missing argument": Bad("takes_a", [], {}, "builtins.TypeError", "missing 1 required"),
    "garbage arguments": damaged("garbage", "not proper JSON"),
    "garbage arguments, coroutine": damaged("garbage", "not proper JSON", "atakes_a"),
    "empty arguments": damaged("", "not proper JSON"),
    "arguments of another form": damaged("[1]", "not that of a call"),
    "unknown tag": damaged('{"args":[{"__sq_pickle__":"x"}],"kwargs":{}}', "unknown tag"),
    "unknown model": damaged(
        '{"args":[{"__sq_model__":["no","model",1]}],"kwargs":{}}', "is installed", "atakes_note"
    ),
    "arguments that are no text": damaged(b"\x80", "not text", "atakes_a"),
    "a model of another kind": damaged(
        '{"args":[{"__sq_model__":["contenttypes","contenttype",1]}],"kwargs":{}}',
        "is no model whose instances may be passed as 'note'", "atakes_note",
    ),
    "more than the limit": damaged(
        f'{{"args":["{"x" * 2**20}"],"kwargs":{{}}}}', "has 1,048,601 characters; the limit"
    ),
    "integers of one hash": damaged(COLLIDING, "no proper value under '__sq_set__'"),
    "endless nesting": damaged("[" * 100_000, "nested more than"),
    "damaged history": Bad(
        "fail_with", ["ValueError"], row={"errors": "garbage", "worker_ids": "[1, {"}
    ),
    "deleted instance": Bad("takes_note", ["NOTE"], {}, DESERIALIZATION, "does not exist"),
    "deleted instance, coroutine": Bad(
        "atakes_note", ["NOTE"], {}, DESERIALIZATION, "faultapp.Note with primary key"
    ),
    "recursion": Bad("recurse", [], {}, "builtins.RecursionError", "maximum recursion depth"),
    "no memory": Bad("exhaust_memory", [], {}, "builtins.(MemoryError|OverflowError)", ""),
    "chain of causes": Bad("chain_of_causes", [10_000], {}, "builtins.ValueError", "a cause"),
    "cancels itself": Bad("cancels_itself", [], {}, "asyncio.exceptions.CancelledError", ""),
    "cancels itself and raises": Bad("cancels_itself_and_raises"),
    "invalid SQL": Bad(
        "breaks_a_transaction", [], {}, "django.db.utils.OperationalError", "no such table"
    ),
    "returns lambda": Bad(
        "give", ["lambda"], {}, ARGUMENT, r"return value cannot be stored: a function"
    ),
    "returns generator": Bad("give", ["generator"], {}, ARGUMENT, "a value of type generator"),
    "returns NaN": Bad("give", ["NaN"], {}, ARGUMENT, "NaN and infinity have no JSON form"),
    "returns 2 MiB": Bad("give", ["2 MiB"], {}, ARGUMENT, "the limit is 1,048,576"),
    "returns an unsaved row": Bad("give", ["unsaved"], {}, ARGUMENT, "is not saved"),
    "returns deep lists": Bad("agive", ["deep"], {}, ARGUMENT, "nested more than 64 levels"),
    "coroutine returns lambda": Bad("agive", ["lambda"], {}, ARGUMENT, "a function"),
    "asynchronous generator": Bad("yields", [], {}, ARGUMENT, "a value of type async_generator"),
}  # fmt: skip

#: By name in ``badapp.tasks.RAISED``: the class that is stored, and what the traceback says.
RAISED = {
    "ValueError": ("builtins.ValueError", "ValueError: on purpose"),
    "SystemExit": ("builtins.SystemExit", "SystemExit: 3"),
    "KeyboardInterrupt": ("builtins.KeyboardInterrupt", "KeyboardInterrupt"),
    "GeneratorExit": ("builtins.GeneratorExit", "GeneratorExit: on purpose"),
    "CancelledError": ("asyncio.exceptions.CancelledError", "CancelledError: on purpose"),
    "StopIteration": ("builtins.(StopIteration|RuntimeError)", "StopIteration: on purpose"),
    "BaseException": ("builtins.BaseException", "BaseException: on purpose"),
    "ExceptionGroup": ("builtins.ExceptionGroup", r"several \(2 sub-exceptions\)"),
    "UnprintableError": ("tests.badapp.tasks.UnprintableError", "UnprintableError"),
    "ExitingError": ("tests.badapp.tasks.ExitingError", "ExitingError"),
    "SubclassedTextError": ("tests.badapp.tasks.SubclassedTextError", "SubclassedTextError"),
    "StrangelyNamedError": (r"tests.badapp.tasks.Strange\\x00\\ud800.*", "on purpose"),
    "HugeError": ("builtins.ValueError", r"(?s)begin x+\n\.\.\. \d+ characters cut \.\.\.\nx+ end"),
    "NulError": ("builtins.ValueError", r"a\\x00b \\ud800 \x1b\[31m %s \{0.__class__\}"),
    "MemoryError": ("builtins.MemoryError", "no memory"),
}
for _name, (_error, _says) in RAISED.items():
    for _task in ("fail_with", "afail_with", "fail_in_a_thread_with"):
        # No future can hold the one, no coroutine be given the other.
        if _task != "fail_in_a_thread_with" or _name not in ("StopIteration", "GeneratorExit"):
            BAD[f"{_task} {_name}"] = Bad(_task, [_name], {}, _error, _says)


class Run:
    """A project whose jobs are run to the end by one supervisor."""

    def __init__(self, folder: Path, template: Path, **worker: Any) -> None:
        queue = {"workers": [{"polling_interval": 0.01, **worker}], "shutdown_timeout": 5}
        self.project = Project(folder, template, queue, EXTRA)
        self.ids: dict[str, int] = {}
        self.good: list[int] = []
        self.results: dict[str, Any] = {}
        self.supervisor: Supervisor

    def ask(self, function: str, argument: Any) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "tests.badapp.client"],
            input=json.dumps([function, argument]),
            cwd=self.project.folder,
            env=self.project.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def enqueue(self, jobs: dict[str, Bad]) -> None:
        calls = [[job.task, job.args, job.kwargs] for job in jobs.values()]
        self.ids |= dict(zip(jobs, self.ask("enqueue", calls), strict=True))
        with closing(sqlite3.connect(self.project.database)) as connection, connection:
            for name, job in jobs.items():
                for column, value in job.row.items():
                    connection.execute(
                        f"UPDATE steady_queue_jobs SET {column} = ? WHERE id = ?",
                        [value, self.ids[name]],
                    )

    def drain(self, seconds: float = 60) -> None:
        self.supervisor = self.project.start("--drain")
        assert self.supervisor.wait_exit(seconds) == 0, self.supervisor.errors()
        told = self.ask("results", list(self.ids.values()))
        self.results = dict(zip(self.ids, told, strict=True))

    def assert_good_jobs_ran_once(self) -> None:
        done = "SELECT id FROM steady_queue_jobs j WHERE finished_at IS NOT NULL AND NOT EXISTS "
        done += "(SELECT 1 FROM steady_queue_failed_executions f WHERE f.job_id = j.id)"
        assert set(self.good) <= {job_id for (job_id,) in self.project.query(done)}
        assert sorted(attempt.job_id for attempt in self.project.attempts()) == sorted(self.good)
        for table in ("ready_executions", "scheduled_executions", "claimed_executions"):
            assert self.project.count(table) == 0
        assert self.project.count("processes") == 0

    def assert_failed_once(self, name: str, error: str, says: str) -> None:
        result = self.results[name]
        assert result["status"] == "FAILED", result
        assert result["attempts"] == len(result["errors"]) == 1
        [[path, traceback]] = result["errors"]
        assert re.fullmatch(error, path), path
        assert re.search(says, traceback), traceback[-2000:]
        assert len(path) <= 255
        assert len(traceback) < LIMIT
        [(stored, message)] = self.project.query(
            "SELECT exception_class, message FROM steady_queue_failed_executions WHERE job_id = ?",
            self.ids[name],
        )
        assert stored == path
        assert len(message) < 4_096
        for text in (path, traceback, message):
            assert "\0" not in text
            text.encode()


@pytest.fixture(scope="module")
def failed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """All the bad jobs among good ones, run by one worker."""
    run = Run(tmp_path_factory.mktemp("failed"), template, threads=3)
    try:
        names = list(BAD)
        good = []
        for start in range(0, len(names), 20):
            good += run.project.enqueue("work", *[[0.0]] * 5)
            run.enqueue({name: BAD[name] for name in names[start : start + 20]})
            good += run.project.enqueue("awork", *[[0.0]] * 5)
        run.drain()
        run.good = good
        yield run
    finally:
        run.project.close()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_job_fails_once_with_a_reason(failed: Run, name: str) -> None:
    bad = BAD[name]
    failed.assert_failed_once(name, bad.error, bad.says)


def test_bad_jobs_harm_no_others(failed: Run) -> None:
    failed.assert_good_jobs_ran_once()
    workers = {worker for result in failed.results.values() for worker in result["workers"]}
    assert len(workers) == 1  # It has outlived them all.


def test_a_row_runs_and_imports_nothing(failed: Run) -> None:
    assert failed.ids["os.system"]
    assert {path.name for path in failed.project.folder.iterdir()}.isdisjoint(
        {"executed", "imported"}
    )


def test_every_line_of_the_log_is_one_event(failed: Run) -> None:
    log = failed.supervisor.errors()
    [line] = [line for line in log.splitlines() if "is not registered" in line and "31m" in line]
    assert "\x1b" not in line
    assert r"'a\x1b[31m\nb'" in line


MESSES = [
    "leaves_a_transaction_open", "leaves_autocommit_off",
    "closes_connections", "changes_directory", "spawns_an_exit",
    "stops_the_loop", "receivers_raise", "areceivers_raise",
]  # fmt: skip


@pytest.fixture(scope="module")
def messy(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Jobs that leave a mess, each followed by two that write to the database."""
    run = Run(tmp_path_factory.mktemp("messy"), template, threads=1)
    try:
        jobs = {}
        for mess in MESSES:
            jobs[mess] = Bad(mess)
            jobs[f"after {mess}"] = Bad("writes_a_note", [mess])
            jobs[f"after {mess}, coroutine"] = Bad("awrites_a_note", [f"coroutine {mess}"])
        run.enqueue(jobs)
        run.drain()
        # By itself: all coroutines of a worker share one thread for their queries.
        run.enqueue({"open": Bad("aleaves_a_transaction_open"), "next": Bad("give", ["list"])})
        run.drain()
        yield run
    finally:
        run.project.close()


@pytest.mark.parametrize("mess", MESSES)
def test_a_job_that_leaves_a_mess_succeeds_and_the_next_does_not_notice(
    messy: Run, mess: str
) -> None:
    for name in (mess, f"after {mess}", f"after {mess}, coroutine"):
        assert (messy.results[name]["status"], messy.results[name]["errors"]) == ("SUCCESSFUL", [])
    for text in (mess, f"coroutine {mess}"):
        found = messy.project.query("SELECT count(*) FROM faultapp_note WHERE text = ?", text)
        assert found == [(1,)]


def test_what_was_not_committed_is_not_kept(messy: Run) -> None:
    left = messy.project.query("SELECT 1 FROM faultapp_note WHERE text = 'never committed'")
    assert left == []
    assert len({result["workers"][0] for result in messy.results.values()}) == 2  # Two drains.


def test_a_transaction_that_a_coroutine_left_open_keeps_nobody_out(messy: Run) -> None:
    assert [messy.results[name]["status"] for name in ("open", "next")] == ["SUCCESSFUL"] * 2


@pytest.mark.thorough
def test_loops_of_task_processes_outlive_what_a_task_does_to_them(
    template: Path, tmp_path: Path
) -> None:
    run = Run(tmp_path, template, threads=1, executor="processes")
    try:
        names = ["spawns_an_exit", "leaves_an_exit_behind", "stops_the_loop"]
        run.enqueue({name: Bad(name) for name in [*names, "breaks_the_loop"]})
        run.drain()
        assert run.results["breaks_the_loop"]["status"] == "FAILED"
        for name in names:
            assert (run.results[name]["status"], run.results[name]["errors"]) == ("SUCCESSFUL", [])
    finally:
        run.project.close()


DEATHS = {
    "exit code 0": "ended with exit code 0 while it was running this job",
    "exit code 3": "ended with exit code 3 while it was running this job",
    "SIGSEGV": "was killed by SIGSEGV while it was running this job",
}


@pytest.fixture(scope="module")
def killed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Jobs that end their worker among good ones, one at a time."""
    run = Run(tmp_path_factory.mktemp("killed"), template, threads=1)
    try:
        good = []
        for death in DEATHS:
            good += run.project.enqueue("work", *[[0.0]] * 20)
            run.enqueue({death: Bad("die", [death])})
        run.enqueue({"once": Bad("die_once", ["SIGKILL"])})
        run.enqueue({"again": Bad("die_again", ["exit code 3"])})
        good += run.project.enqueue("work", *[[0.0]] * 20)
        run.drain()
        # By itself: a coroutine runs beside the threads, and they die together.
        run.enqueue({"coroutine": Bad("adie", ["SIGKILL"])})
        run.drain()
        run.good = good
        yield run
    finally:
        run.project.close()


EXIT = "steady_queue_core.errors.ProcessExitError"


@pytest.mark.parametrize("death", DEATHS)
def test_a_job_that_ends_its_worker_fails_once(killed: Run, death: str) -> None:
    killed.assert_failed_once(death, EXIT, DEATHS[death])
    [worker] = killed.results[death]["workers"]
    assert f"The process {worker} (pid " in killed.results[death]["errors"][0][1]


def test_so_does_a_coroutine(killed: Run) -> None:
    killed.assert_failed_once("coroutine", EXIT, "was killed by SIGKILL while")


def test_a_job_with_attempts_left_runs_again(killed: Run) -> None:
    result = killed.results["once"]
    assert (result["status"], result["value"], result["attempts"]) == (
        "SUCCESSFUL",
        "'survived'",
        2,
    )
    assert [path for path, _ in result["errors"]] == [EXIT]
    assert len(set(result["workers"])) == 2


def test_a_job_without_attempts_left_does_not(killed: Run) -> None:
    result = killed.results["again"]
    assert (result["status"], result["attempts"]) == ("FAILED", 2)
    assert [path for path, _ in result["errors"]] == [EXIT, EXIT]
    assert len(set(result["workers"])) == 2


def test_the_others_run_once_all_the_same(killed: Run) -> None:
    killed.assert_good_jobs_ran_once()
