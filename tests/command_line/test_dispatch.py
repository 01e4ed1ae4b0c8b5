"""From the command line to a subcommand, and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.core.management import CommandError, call_command
from django.db import InternalError, OperationalError, ProgrammingError, connections
from django.db.migrations.executor import MigrationExecutor

from steady_queue_core import cli
from steady_queue_core.command_line import registry, runner
from steady_queue_core.command_line.context import Context
from steady_queue_core.command_line.exit_codes import Refusal
from steady_queue_core.command_line.subcommand import Subcommand
from steady_queue_core.errors import DialectNotFound
from steady_queue_core.management.commands.steady_queue import Command
from steady_queue_core.models import Queue
from steady_queue_core.models.readiness import LABEL, pending_migrations

from ..test_cli import steady_queue
from .invoking import environment, invoke, run


class Probe(Subcommand):
    """Does what a test says."""

    name = "status"
    help = "probe"
    #: What it raises, or returns.
    outcome: ClassVar[Any] = 0

    def run(self, context: Context) -> int:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return int(self.outcome)


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> type[Probe]:
    monkeypatch.setattr(runner, "named", lambda name: Probe())
    monkeypatch.setattr(Probe, "outcome", 0)
    return Probe


@pytest.mark.parametrize(
    ("outcome", "code", "problem"),
    [
        (0, 0, None),
        (1, 1, None),
        (Refusal("no such job", 4), 4, "no such job"),
        (DialectNotFound("pip install it"), 5, "pip install it"),
        (OperationalError("gone away\n"), 1, "The database reports an error: gone away"),
        (
            ProgrammingError("permission denied for table jobs\n"),
            1,
            "The database reports an error: permission denied for table jobs",
        ),
        (InternalError("read only"), 1, "The database reports an error: read only"),
        (PermissionError(13, "Permission denied"), 1, "[Errno 13] Permission denied"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (BrokenPipeError(), 141, None),
    ],
)
@pytest.mark.django_db
def test_the_exit_status_tells_how_it_ended(
    outcome: Any, code: int, problem: str | None, probe: type[Probe],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("steady_queue_core.command_line.runner._silence", lambda: None)
    probe.outcome = outcome
    told = invoke("status")
    assert told.code == code
    assert told.out == ""
    if problem:
        assert told.err == f"{problem}\n"
        assert invoke("status", "--json").json == {"schema": 1, "problems": [problem]}


@pytest.mark.django_db
def test_pending_migrations_are_named_where_a_column_is_missing(
    probe: type[Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pending_migrations(connections["default"]) == []
    probe.outcome = OperationalError("no such column")
    recorder = MigrationExecutor(connections["default"]).recorder
    last = max(name for app, name in recorder.applied_migrations() if app == LABEL)
    recorder.record_unapplied(LABEL, last)
    told = invoke("status")
    assert told.code == 5
    assert told.err == f"Migrations are pending: {last}. Run: manage.py migrate\n"


def test_without_a_subcommand_the_queue_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(Command, "_run", lambda self, **options: given.append(options))
    for arguments in ([], ["start"]):
        call_command("steady_queue", *arguments, "--queues", "a,b", "--threads", "2", "-v", "2")
        call_command("steady_queue", "--queues", "a,b", "--threads", "2", "-v", "2", *arguments)
    call_command("steady_queue", queues="a,b", threads=2, verbosity=2)
    call_command("steady_queue", "start", queues="a,b", threads=2, verbosity=2)
    assert len(given) == 6
    for options in given:
        assert (options["queues"], options["threads"], options["verbosity"]) == ("a,b", 2, 2)
        assert options["drain_horizon"] == 60
        assert options["mode"] is None


def test_djangos_options_may_stand_before_and_after_the_subcommand(
    probe: type[Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(probe, "run", lambda self, context: given.append(context.options) or 0)
    invoke("-v", "2", "--backend", "default", "status")
    invoke("status", "-v", "2", "--backend", "default")
    invoke("-v", "0", "--backend", "x", "status", "-v", "2", "--backend", "default")
    for options in given:
        assert (options["verbosity"], options["backend"]) == (2, "default")


def test_subcommands_work_in_a_project_whose_checks_fail(probe: type[Probe]) -> None:
    call_command("steady_queue", "status", skip_checks=False)


def test_an_unknown_subcommand_is_wrong_usage() -> None:
    with pytest.raises(CommandError, match="invalid choice: 'statis'"):
        call_command("steady_queue", "statis")


def test_every_subcommand_is_in_the_help_of_the_console_script() -> None:
    for subcommand in registry.SUBCOMMANDS:
        assert f" {subcommand.name} " in cli.USAGE or f" {subcommand.name}\n" in cli.USAGE
        assert subcommand.help[0].islower()
        assert not subcommand.help.endswith(".")


def test_a_process_of_its_own_has_that_exit_status(workspace: Path, tmp_path: Path) -> None:
    environ = environment(tmp_path / "t.sqlite3")
    refused = run(workspace, environ, "status", "--json")
    assert refused.code == 5
    assert "lacks the tables of Steady Queue" in refused.json["problems"][0]
    assert run(workspace, environ, "statis").code == 2
    assert "Traceback" not in refused.err


def test_in_the_folder_of_a_project_its_manage_py_is_given_the_subcommand(tmp_path: Path) -> None:
    (tmp_path / "manage.py").write_text("import sys\nprint(*sys.argv[1:])\nsys.exit(7)\n")
    result = steady_queue(tmp_path, "status", "--json")
    assert (result.returncode, result.stdout) == (7, "steady_queue status --json\n")


@pytest.mark.django_db(transaction=True)
def test_output_that_nobody_reads_ends_without_a_traceback(workspace: Path) -> None:
    file = connections["default"].settings_dict["NAME"]
    piped = subprocess.Popen(
        [sys.executable, "-m", "steady_queue_core", "status"],
        cwd=workspace, env=environment(file), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert piped.stdout
    assert piped.stderr
    piped.stdout.close()
    told = piped.stderr.read()
    assert piped.wait(60) == 141
    assert told == b""
    piped.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize("command", [["status"], ["status", "--json"], ["metrics"]])
@pytest.mark.django_db(transaction=True)
def test_output_to_a_full_disk_ends_with_a_message(command: list[str], workspace: Path) -> None:
    file = connections["default"].settings_dict["NAME"]
    with open("/dev/full", "w") as full:
        told = subprocess.run(
            [sys.executable, "-m", "steady_queue_core", *command],
            cwd=workspace, env=environment(file), stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert told.stderr == "The output cannot be written: No space left on device\n"
    assert told.returncode == 1


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["jobs", "--limit", "x", "--json"], "argument --limit: 'x' is not a number of at least 1"),
        (["jobs", "--json", "--no-such"], "unrecognized arguments: --no-such"),
        (["--no-such", "jobs", "--jso"], "unrecognized arguments: --no-such"),
        (["show", "--json"], "the following arguments are required: ID"),
        (["show", "x", "--json"], "argument ID: 'x' is not the id of a job"),
        (["pause", " x", "--json"], "argument QUEUE: no queue has the name ' x'"),
        (["statis", "--json"], "argument subcommand: invalid choice: 'statis'"),
        (["watch", "--json"], "unrecognized arguments: --json"),
        (["schedules", "run", "--json"], "Say which: schedules run KEY"),
    ],
)
@pytest.mark.django_db
def test_wrong_options_are_told_in_json_too(
    command: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        Command().run_from_argv(["manage.py", "steady_queue", *command])
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["schema"], len(told["problems"])) == (1, 1)
    assert told["problems"][0].startswith(problem)
    assert problem in err
    assert ending.value.code == 2


def test_wrong_options_without_json_are_told_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Command().run_from_argv(["manage.py", "steady_queue", "jobs", "--limit", "x"])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: ")


@pytest.mark.django_db(transaction=True)
def test_a_stream_that_takes_ascii_only_is_given_that(workspace: Path) -> None:
    Queue("post-büro").pause()
    environ = environment(connections["default"].settings_dict["NAME"])
    told = run(workspace, environ | {"PYTHONIOENCODING": "ascii"}, "status")
    assert (told.code, told.err) == (0, "")
    assert "paused: post-b\\xfcro" in told.lines
    # As Prometheus reads a backslash.
    metrics = run(workspace, environ | {"PYTHONIOENCODING": "ascii"}, "metrics")
    assert (metrics.code, metrics.err) == (0, "")
    assert 'queue="post-b\\\\xfcro"' in metrics.out


def test_notes_are_not_printed_in_red(probe: type[Probe]) -> None:
    probe.outcome = Refusal("no such job", 4)
    told = invoke("status", force_color=True, terminal=True)
    assert told.err == "no such job\n"
