"""One competitor's sandbox: its environment, project, database and task marks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping

from benchmarks import environments, project
from benchmarks.adapters import Adapter
from benchmarks.databases import Database, DatabaseServer
from benchmarks.options import Options
from benchmarks.processes import Tree

Figures = dict[str, float]

FILLING = 6
"""Filling the queue may take this many times as long as the drain."""


class Failure(Exception):
    """A measurement failed, for the reason in the message."""


class Sandbox:
    """Sets up a competitor, resets its state between measures, and runs its processes."""

    def __init__(self, adapter: Adapter, options: Options, server: DatabaseServer) -> None:
        self.adapter = adapter
        self.options = options
        requirements = [*adapter.requirements(options.database), *server.drivers]
        self.interpreter = environments.prepare(requirements, options.python)
        self.versions = environments.versions(
            self.interpreter, adapter.distributions(options.database)
        )
        self.directory = options.directory / options.database / adapter.name
        self.directory.mkdir(parents=True)
        self.project = self.directory / "project"
        self.effects = self.directory / "effects"
        self.effects.mkdir()
        self.database: Database = server.database(adapter.name)
        self._filled: dict[str, int] = {}
        project.write(self.project, adapter, self.database, options)
        self.database.clear()
        self.client("prepare")
        self.database.keep("empty")

    def reset(self, state: str = "empty") -> None:
        """Restore the database, and delete the task marks."""
        self.database.restore(state)
        shutil.rmtree(self.effects)
        self.effects.mkdir()

    def fill(self, task: str, share: float = 1.0) -> int:
        """Fill the queue with jobs, restoring a snapshot after the first time; return how many.

        There are ``share`` times as many as the options say.
        """
        if task not in self._filled:
            self.reset()
            jobs, patience = int(share * self.options.jobs), FILLING * self.options.limit
            self._filled[task] = int(self.client("fill", task, jobs, patience)["jobs"])
            self.database.keep(task)
        self.reset(task)
        return self._filled[task]

    def run(
        self, jobs: int, environment: Mapping[str, str] | None = None
    ) -> tuple[Figures, int, float]:
        """Run the workers; return the watcher's figures, the start time and the memory."""
        watcher = self._popen("watch", jobs, self.options.limit)
        try:
            assert watcher.stdout is not None
            if watcher.stdout.readline().strip() != "ready":
                raise Failure(_error(watcher))
            with self.workers(environment) as tree:
                figures = self._result(watcher, tree=tree)
                self.check(tree)
                return figures, tree.started_ns, tree.memory() / 2**20
        finally:
            watcher.kill()
            watcher.wait()

    def workers(self, environment: Mapping[str, str] | None = None) -> Tree:
        """Start the worker processes, with additional environment variables."""
        return Tree(
            self.adapter.worker_commands(self.interpreter, self.database, self.options),
            directory=self.project,
            environment=self._environment() | dict(environment or {}),
            log=self.directory / "workers.log",
        )

    def check(self, tree: Tree) -> None:
        """Raise `Failure` if a worker has exited."""
        if not tree.alive():
            raise Failure(f"a worker ended by itself:\n{tree.last_words()}")

    def client(
        self,
        command: str,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        tree: Tree | None = None,
    ) -> Figures:
        """Run a command of `benchmarks.client` in the competitor's environment."""
        client = self._popen(command, *arguments, environment=environment)
        try:
            return self._result(client, tree=tree)
        finally:
            client.kill()
            client.wait()

    def _popen(
        self, command: str, *arguments: object, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        words = [self.interpreter, "-m", "benchmarks.client", self.adapter.name, command]
        return subprocess.Popen(
            [*words, *map(str, arguments)],
            cwd=self.project,
            env=self._environment() | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _result(self, client: subprocess.Popen[str], *, tree: Tree | None = None) -> Figures:
        deadline = time.monotonic() + 60 + 2 * self.options.limit
        while True:
            try:
                output, errors = client.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                if tree is not None:
                    self.check(tree)
                if time.monotonic() > deadline:
                    raise Failure("no answer in time" + _said(tree)) from None
        if client.returncode:
            raise Failure("\n".join(errors.strip().splitlines()[-6:]) + _said(tree))
        figures: Figures = json.loads(output.strip().splitlines()[-1])
        return figures

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return kept | {
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": str(self.project),
            "PYTHONUNBUFFERED": "1",
            "BENCHMARK_EFFECTS": str(self.effects),
        }


def _error(client: subprocess.Popen[str]) -> str:
    return "\n".join(client.communicate(timeout=30)[1].strip().splitlines()[-6:])


def _said(tree: Tree | None) -> str:
    if tree is None:
        return ""
    words = tree.last_words()
    return f"\nThe workers' last lines:\n{words}" if words else "\nThe workers printed nothing."
