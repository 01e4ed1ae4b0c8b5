"""A throw-away project whose queue runs in real processes, and gets real signals.

The test's own process never forks and never writes to the project's database through Django: it
reads the tables by the driver, starts processes, and signals those, and their children, alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import django

from ..servers.address import Address
from . import proc
from .checker import Attempt, Kill, Snapshot, read_effects
from .forked import ForkedProcess, environment, fork_server
from .storage import ServerDatabase, SQLiteFile
from .waiting import wait_for

#: Multiplies the number of jobs, and the length of the faults, of the large tests.
SCALE = float(os.environ.get("STEADY_QUEUE_FAULT_SCALE", "1"))

SETTINGS = """
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
SECRET_KEY = "for tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = {apps!r}
DATABASES = {{
    "default": {database},
}}
TASKS = {{
    "default": {{"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []}},
}}
LOGGING = {{
    "version": 1,
    "formatters": {{"line": {{"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}}}},
    "handlers": {{"console": {{"class": "logging.StreamHandler", "formatter": "line"}}}},
    "loggers": {{
        "steady_queue": {{"handlers": ["console"], "level": "INFO"}},
        "steady_queue.task": {{"level": "WARNING"}},
    }},
    "disable_existing_loggers": False,
}}
STEADY_QUEUE = {queue!r}
"""


@dataclass
class Supervisor:
    """A supervisor that a test has started, and its children."""

    project: Project
    process: ForkedProcess | subprocess.Popen[bytes]
    out: Path
    err: Path
    birth: int
    #: Children that were seen, by pid, with the time of their birth.
    family: dict[int, int] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return self.process.pid

    def children(self) -> list[int]:
        """Return the pids of the living children."""
        found = proc.children(self.pid)
        self.family.update({each.pid: each.birth for each in found})
        return [each.pid for each in found]

    def wait_children(self, seconds: float = 20.0) -> list[int]:
        """Return the pids of the children as soon as there is one."""

        def found() -> list[int]:
            if self.process.poll() is not None:
                raise AssertionError(f"the supervisor has ended:\n{self.errors()}")
            return self.children()

        return wait_for(found, seconds, f"a child of {self.pid}")

    def workers(self) -> list[int]:
        """Return the pids of the workers that are registered and alive."""
        registered = {
            pid for (pid,) in self.project.query(
                "SELECT pid FROM steady_queue_processes WHERE kind = 'worker'"
            )
        }  # fmt: skip
        return [pid for pid in self.children() if pid in registered]

    def wait_ready(self, workers: int = 1, seconds: float = 20.0) -> list[int]:
        """Return the pids of the workers as soon as there are so many."""

        def ready() -> list[int]:
            if self.process.poll() is not None:
                raise AssertionError(f"the supervisor has ended:\n{self.errors()}")
            found = self.workers()
            return found if len(found) >= workers else []

        return wait_for(ready, seconds, f"{workers} workers of {self.pid}")

    def send(self, signum: int, pid: int | None = None) -> Kill | None:
        """Signal the supervisor or one of its children; ``None``: it had ended already."""
        if pid is None or pid == self.pid:
            pid, birth = self.pid, self.birth
            if self.process.poll() is not None:
                return None
        else:
            if pid not in self.family:
                self.children()
            birth = self.family[pid]
        before = time.monotonic_ns()
        if not proc.send(pid, signum, birth):
            return None
        kill = Kill(pid, before, time.monotonic_ns(), signum)
        self.project.kills.append(kill)
        return kill

    def send_tree(self, signum: int) -> None:
        """Signal the supervisor and every child."""
        for pid in [self.pid, *self.children()]:
            self.send(signum, pid)

    def wait_exit(self, seconds: float = 20.0) -> int:
        """Return the exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the supervisor has not ended in {seconds:g} s:\n{self.errors()}"
            ) from None

    def stop(self, signum: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Signal the supervisor and return its exit code."""
        self.send(signum)
        return self.wait_exit(seconds)

    def output(self) -> str:
        return self.out.read_text(errors="replace")

    def errors(self) -> str:
        return self.err.read_text(errors="replace")

    def destroy(self) -> None:
        """Kill whatever is left of the session."""
        deadline = time.monotonic() + 10
        while left := proc.in_session(self.pid):
            if time.monotonic() > deadline:
                raise AssertionError(f"cannot get rid of {left}")
            for each in left:
                proc.send(each.pid, signal.SIGKILL, each.birth)
            self.process.poll()
            time.sleep(0.01)
        self.process.wait()


class Client:
    """A process of the project that does what a web process does. See ``faultapp.client``."""

    def __init__(self, project: Project) -> None:
        questions, self._questions = os.pipe()
        self._answers, answers = os.pipe()
        with (
            open(project.folder / "client.err", "ab") as errors,
            open(questions, "rb") as stdin,
            open(answers, "wb") as stdout,
        ):
            self._process = project.spawn(
                "tests.faultapp.client", stdin=stdin, stdout=stdout, stderr=errors
            )
        self._ask = open(self._questions, "w")  # noqa: SIM115 (closed with the client)
        self._hear = open(self._answers)  # noqa: SIM115 (closed with the client)

    def begin(self, function: str, **arguments: Any) -> None:
        """Have a function called; ``finish`` returns its value."""
        self._ask.write(json.dumps([function, arguments]) + "\n")
        self._ask.flush()

    def finish(self) -> Any:
        line = self._hear.readline()
        answer = json.loads(line) if line else {"error": "the client has ended"}
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["value"]

    def call(self, function: str, **arguments: Any) -> Any:
        self.begin(function, **arguments)
        return self.finish()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._hear.close()
        with suppress(BrokenPipeError):
            self._ask.close()


class Project:
    """A folder with settings, a migrated database and an effect log.

    The database is a copy of ``template``, a file or the name of a database on ``server``.
    """

    def __init__(
        self,
        folder: Path,
        template: Path | str | None,
        queue: Mapping[str, Any],
        extra: str = "",
        *,
        server: Address | None = None,
        files: Mapping[str, str] | None = None,
        is_fresh: bool = False,
    ) -> None:
        self.folder = folder
        #: Whether each of its processes is an interpreter of its own, as a user would start it.
        self.is_fresh = is_fresh
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        self.database = folder / "db.sqlite3"
        self.file = SQLiteFile(self.database)
        on_server = str(template) if template else None
        self.storage = ServerDatabase(server, on_server) if server else self.file
        self.effect_log = folder / "effects.log"
        self.effect_log.touch()
        #: Signals that were sent, in order.
        self.kills: list[Kill] = []
        self.enqueued: list[int] = []
        self.supervisors: list[Supervisor] = []
        self.mutant = ""
        self._client: Client | None = None
        apps = ["django.contrib.contenttypes", "django.contrib.auth", "steady_queue_core"]
        if django.VERSION < (6, 0):
            apps.append("django_tasks")
        apps.append("tests.faultapp")
        settings = SETTINGS.format(apps=apps, queue=dict(queue), database=self.storage.setting)
        (folder / "project_settings.py").write_text(settings + textwrap.dedent(extra))
        if server is not None and template is None:
            self.migrate()
        elif server is None and template is not None:
            shutil.copy(template, self.database)

    # --- processes ---------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        return {
            **environment(self.folder),
            "DJANGO_SETTINGS_MODULE": "project_settings",
            "STEADY_QUEUE_EFFECT_LOG": str(self.effect_log),
            "STEADY_QUEUE_MUTANT": self.mutant,
        }

    def migrate(self) -> None:
        migrated = self.manage("migrate", "--run-syncdb", "--verbosity", "0")
        assert migrated.returncode == 0, migrated.stderr

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a management command to its end."""
        with (
            open(os.devnull, "rb") as stdin,
            tempfile.TemporaryFile("w+") as stdout,
            tempfile.TemporaryFile("w+") as stderr,
        ):
            command = ("django", *arguments)
            process = self.spawn(*command, stdin=stdin, stdout=stdout, stderr=stderr)
            try:
                code = process.wait(60)
            finally:
                process.kill()
            texts = [file.seek(0) or file.read() for file in (stdout, stderr)]
        return subprocess.CompletedProcess(command, code, *texts)

    def spawn(
        self,
        *command: str,
        stdin: IO[Any],
        stdout: IO[Any],
        stderr: IO[Any],
        under: Sequence[str] = (),
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        """Run ``python -m COMMAND`` in the project, in a session of its own."""
        if not (self.is_fresh or under):
            return fork_server().start(
                command, self.folder, self.environment(), (stdin, stdout, stderr)
            )
        return subprocess.Popen(
            [*under, sys.executable, "-m", *command],
            cwd=self.folder,
            env=self.environment(),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    def start(self, *arguments: str, under: Sequence[str] = (), checks: bool = False) -> Supervisor:
        """Start a supervisor, in a session of its own; ``under``: a command that becomes it. The
        system checks, which take half of the time, are for those that need them."""
        if not checks:
            arguments = (*arguments, "--skip-checks")
        number = len(self.supervisors)
        out, err = (self.folder / f"supervisor-{number}.{kind}" for kind in ("out", "err"))
        with (
            open(os.devnull, "rb") as stdin,
            open(out, "wb") as stdout,
            open(err, "wb") as stderr,
        ):
            process = self.spawn(
                "django", "steady_queue", *arguments,
                under=under, stdin=stdin, stdout=stdout, stderr=stderr,
            )  # fmt: skip
        supervisor = Supervisor(self, process, out, err, proc.birth(process.pid))
        self.supervisors.append(supervisor)
        return supervisor

    def new_client(self) -> Client:
        return Client(self)

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = self.new_client()
        return self._client

    def close(self) -> None:
        """Kill every process that was started, and drop a database on a server."""
        if self._client is not None:
            self._client.close()
        for supervisor in self.supervisors:
            supervisor.destroy()
        self.storage.close()

    # --- the queue ---------------------------------------------------------------------------

    def enqueue(self, task: str, *calls: Sequence[Any], **options: Any) -> list[int]:
        """Enqueue a task once for each list of arguments (none: once without); return the ids."""
        ids = self.client.call("enqueue", task=task, calls=list(calls) or [[]], **options)
        self.enqueued += ids
        return list(ids)

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.storage.query(statement, *parameters)

    def count(self, table: str) -> int:
        return int(self.query(f"SELECT count(*) FROM steady_queue_{table}")[0][0])

    def unfinished(self) -> int:
        found = self.query("SELECT count(*) FROM steady_queue_jobs WHERE finished_at IS NULL")
        return int(found[0][0])

    def wait_done(self, seconds: float = 60.0) -> None:
        """Wait until every job has ended, well or not."""
        try:
            wait_for(lambda: self.unfinished() == 0, seconds, "the end of all jobs")
        except AssertionError as error:
            left = self.query(
                "SELECT (SELECT count(*) FROM steady_queue_ready_executions), "
                "(SELECT count(*) FROM steady_queue_claimed_executions)"
            )
            raise AssertionError(f"{error}; (ready, claimed) = {left[0]}\n{self.logs()}") from None

    def state_of(self, job_id: int) -> str:
        return "+".join(self.snapshot().jobs[job_id].states)

    def snapshot(self) -> Snapshot:
        return self.storage.snapshot()

    def attempts(self) -> list[Attempt]:
        return read_effects(self.effect_log.read_text())

    def attempts_at(self, job_id: int) -> list[Attempt]:
        return [attempt for attempt in self.attempts() if attempt.job_id == job_id]

    def wait_started(self, job_id: int, times: int = 1, seconds: float = 20.0) -> Attempt:
        """Wait until a job has started so many times; return the latest attempt."""

        def latest() -> Attempt | None:
            found = self.attempts_at(job_id)
            return found[-1] if len(found) >= times else None

        found = wait_for(latest, seconds, f"start {times} of job {job_id}")
        assert found is not None
        return found

    def write_lock(self, patience: float = 20.0) -> AbstractContextManager[None]:
        return self.file.write_lock(patience)

    def lock_file(self, patience: float = 20.0) -> AbstractContextManager[None]:
        return self.file.lock_file(patience)

    def logs(self) -> str:
        """Return the last lines of every supervisor's messages."""
        return "\n".join(
            f"--- supervisor {supervisor.pid}\n" + "\n".join(supervisor.errors().splitlines()[-40:])
            for supervisor in self.supervisors
        )
