"""One contender on this machine: its environment, its project, and how each measure is taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time

from benchmarks import environments, probe, project
from benchmarks.adapters import Adapter
from benchmarks.databases import Database, database
from benchmarks.options import Options
from benchmarks.processes import Tree

Figures = dict[str, float]


class Failure(Exception):
    """A measure could not be taken; the text says why."""


class Contender:
    """Takes the measures of one contender."""

    def __init__(self, adapter: Adapter, options: Options) -> None:
        self.adapter = adapter
        self.options = options
        self.interpreter = environments.prepare(adapter, options.python)
        self.versions = environments.versions(self.interpreter, adapter.distributions)
        self.directory = options.directory / adapter.name
        self.directory.mkdir(parents=True)
        self.project = self.directory / "project"
        self.effects = self.directory / "effects"
        self.effects.mkdir()
        self.database: Database = database(options.database, self.directory)
        self._filled: set[str] = set()
        project.write(self.project, adapter, self.database, options)
        self.database.clear()
        self._client("prepare")
        self.database.keep("empty")

    def measure(self, *, counting: bool) -> Figures:
        """Take every measure once; count statements only where asked, for they do not vary."""
        figures = self._enqueue() | self._idle() | self._drain("noop", "drain")
        if self.adapter.capabilities.coroutine:
            figures |= self._drain("anoop", "drain_coroutine")
        return figures | self._statements() if counting else figures

    # The measures.

    def _enqueue(self) -> Figures:
        options = self.options
        self._reset("empty")
        one = self._client("enqueue", options.enqueued, options.limit)
        figures = {"enqueue": one["rate"]}
        if self.adapter.capabilities.bulk:
            self._reset("empty")
            many = self._client("bulk", options.enqueued * 10, options.limit)
            if "rate" in many:
                figures["bulk"] = many["rate"]
        return figures

    def _idle(self) -> Figures:
        """Latency, CPU time and memory of workers that have next to nothing to do."""
        self._reset("empty")
        with self._workers() as tree:
            latency = self._client("latency", self.options.samples, tree=tree)
            time.sleep(0.5)
            before, begin = tree.cpu_seconds(), time.monotonic()
            time.sleep(self.options.idle)
            used = tree.cpu_seconds() - before
            seconds = time.monotonic() - begin
            self._check(tree)
            return {
                "latency_p50": latency["p50"],
                "latency_p95": latency["p95"],
                "latency_max": latency["max"],
                "latency_call_p50": latency["call_p50"],
                "idle_cpu": 100 * used / seconds,
                "memory_idle": tree.memory() / 2**20,
                "processes": len(tree.pids()),
            }

    def _drain(self, task: str, name: str) -> Figures:
        options = self.options
        self._fill(task, options.jobs)
        watched, started_ns, memory = self._run(options.jobs)
        return {
            name: watched["rate"],
            f"{name}_wall": watched["ran"] / ((watched["end_ns"] - started_ns) / 1e9),
            f"{name}_ran": watched["ran"],
            f"{name}_left": watched["left"],
            f"{name}_processes": watched["processes"],
            "memory": memory,
        }

    def _statements(self) -> Figures:
        """Statements and commits for each job: in the process that enqueues, and in the workers."""
        options = self.options
        self._reset("empty")
        enqueued = self._client("enqueue", 100, options.limit, traced=True)
        figures = {
            "statements_enqueue": enqueued["statements"],
            "commits_enqueue": enqueued["commits"],
        }
        self._fill("noop", options.jobs)
        self._run(options.jobs, traced=True)
        ran = probe.effects(self.effects)
        if ran.statements is not None and ran.commits is not None:
            figures |= {"statements_run": ran.statements, "commits_run": ran.commits}
        return figures

    # What they are made of.

    def _reset(self, state: str) -> None:
        """Put the database and the effects back to the beginning."""
        self.database.restore(state)
        shutil.rmtree(self.effects)
        self.effects.mkdir()

    def _fill(self, task: str, jobs: int) -> None:
        """Put that many jobs of the task into the queue; made once, then restored."""
        state = f"{task}-{jobs}"
        if state not in self._filled:
            self._reset("empty")
            self._client("fill", task, jobs)
            self.database.keep(state)
            self._filled.add(state)
        self._reset(state)

    def _run(self, jobs: int, *, traced: bool = False) -> tuple[Figures, int, float]:
        """Let the workers run; return what the watcher saw, their start and their memory."""
        watcher = self._popen("watch", jobs, self.options.limit)
        try:
            assert watcher.stdout is not None
            if watcher.stdout.readline().strip() != "ready":
                raise Failure(self._error(watcher))
            with self._workers(traced=traced) as tree:
                figures = self._result(watcher, tree=tree)
                self._check(tree)
                return figures, tree.started_ns, tree.memory() / 2**20
        finally:
            watcher.kill()
            watcher.wait()

    def _workers(self, *, traced: bool = False) -> Tree:
        return Tree(
            self.adapter.worker_commands(self.interpreter, self.database, self.options),
            directory=self.project,
            environment=self._environment(traced=traced),
            log=self.directory / "workers.log",
        )

    def _check(self, tree: Tree) -> None:
        if not tree.alive():
            raise Failure(f"a worker ended by itself:\n{tree.last_words()}")

    def _client(
        self, command: str, *arguments: object, traced: bool = False, tree: Tree | None = None
    ) -> Figures:
        client = self._popen(command, *arguments, traced=traced)
        try:
            return self._result(client, tree=tree)
        finally:
            client.kill()
            client.wait()

    def _popen(
        self, command: str, *arguments: object, traced: bool = False
    ) -> subprocess.Popen[str]:
        words = [self.interpreter, "-m", "benchmarks.client", self.adapter.name, command]
        return subprocess.Popen(
            [*words, *map(str, arguments)],
            cwd=self.project,
            env=self._environment(traced=traced),
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
                    self._check(tree)
                if time.monotonic() > deadline:
                    raise Failure("no answer in time" + _said(tree)) from None
        if client.returncode:
            raise Failure("\n".join(errors.strip().splitlines()[-6:]) + _said(tree))
        figures: Figures = json.loads(output.strip().splitlines()[-1])
        return figures

    def _error(self, client: subprocess.Popen[str]) -> str:
        return "\n".join(client.communicate(timeout=30)[1].strip().splitlines()[-6:])

    def _environment(self, *, traced: bool) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment = kept | {
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": str(self.project),
            "PYTHONUNBUFFERED": "1",
            "BENCHMARK_EFFECTS": str(self.effects),
        }
        if traced:
            environment["BENCHMARK_TRACE"] = "1"
        return environment


def _said(tree: Tree | None) -> str:
    if tree is None:
        return ""
    words = tree.last_words()
    return f"\nThe workers' last lines:\n{words}" if words else "\nThe workers printed nothing."
