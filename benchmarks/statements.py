"""Statements, round trips and commits for each job: where it is enqueued, and in the workers.

A server counts them itself, from outside of the competitor. SQLite is none: there the processes
count.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from types import TracebackType

from benchmarks import task_probe
from benchmarks.databases import Counts
from benchmarks.proxy import Proxy
from benchmarks.sandbox import Figures, Sandbox

FEW, MANY = 100, 300
"""Jobs in two runs: the difference is the cost of the additional jobs, without fixed costs."""
PATIENCE = 30
"""Seconds for each of them."""
PAUSE = 0.02
"""Seconds between two looks at the counts."""


def count(sandbox: Sandbox) -> Figures:
    """Return the counts for each job of one kind of run."""
    if sandbox.database.counts() is None:
        return _traced(sandbox)
    settings = sandbox.database.settings()
    with Proxy(str(settings["HOST"]), int(str(settings["PORT"]))) as proxy:
        return _enqueued(sandbox, proxy) | _run(sandbox, proxy)


def _traced(sandbox: Sandbox) -> Figures:
    """Let the processes count their statements and commits."""
    options, environment = sandbox.options, {"BENCHMARK_TRACE": "1"}
    sandbox.reset()
    enqueued = sandbox.client("enqueue", FEW, options.limit, environment=environment)
    figures = {
        "statements_enqueue": enqueued["statements"],
        "commits_enqueue": enqueued["commits"],
    }
    sandbox.run(sandbox.fill("noop"), environment)
    ran = task_probe.effects(sandbox.effects)
    if ran.statements is not None and ran.commits is not None:
        figures |= {"statements_run": ran.statements, "commits_run": ran.commits}
    return figures


@dataclass(frozen=True)
class Look:
    """The counters of server and proxy after a number of jobs."""

    jobs: float
    counts: Counts
    round_trips: int

    def since(self, before: Look, suffix: str) -> Figures:
        """Return the cost of each job between two looks."""
        jobs = self.jobs - before.jobs
        figures = {
            f"commits_{suffix}": (self.counts.commits - before.counts.commits) / jobs,
            f"round_trips_{suffix}": (self.round_trips - before.round_trips) / jobs,
        }
        if self.counts.statements is not None and before.counts.statements is not None:
            asked = self.counts.statements - before.counts.statements
            figures[f"statements_{suffix}"] = asked / jobs
        return figures


def _look(sandbox: Sandbox, proxy: Proxy, jobs: float) -> Look:
    counts = sandbox.database.counts()
    assert counts is not None
    return Look(jobs, counts, proxy.round_trips)


def _enqueued(sandbox: Sandbox, proxy: Proxy) -> Figures:
    sandbox.reset()
    costs = []
    for jobs in (FEW, MANY):
        before = _look(sandbox, proxy, 0)
        done = sandbox.client("enqueue", jobs, PATIENCE, environment=_way(proxy))["done"]
        after = _look(sandbox, proxy, done)
        costs.append((done, after.since(before, "enqueue")))
    (few, cheap), (many, dear) = costs
    if many <= few:
        return {}
    return {name: (dear[name] * many - cheap[name] * few) / (many - few) for name in dear}


def _run(sandbox: Sandbox, proxy: Proxy) -> Figures:
    jobs = sandbox.fill("noop")
    with Looks(sandbox, proxy) as looks:
        sandbox.run(jobs, _way(proxy))
    # From the first job on, so without start-up, and not to the end, after which queues are empty.
    amid = [look for look in looks.taken if 0 < look.jobs < jobs]
    return amid[-1].since(amid[0], "run") if len(amid) > 1 and _moved(amid) else {}


def _moved(looks: list[Look]) -> bool:
    return looks[-1].jobs > looks[0].jobs


def _way(proxy: Proxy) -> dict[str, str]:
    return {"BENCHMARK_PORT": str(proxy.port)}


class Looks:
    """A thread that looks again and again while workers run."""

    def __init__(self, sandbox: Sandbox, proxy: Proxy) -> None:
        self.taken: list[Look] = []
        self._sandbox, self._proxy = sandbox, proxy
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take)

    def __enter__(self) -> Looks:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _take(self) -> None:
        while not self._over.is_set():
            jobs = task_probe.effects(self._sandbox.effects).jobs
            self.taken.append(_look(self._sandbox, self._proxy, jobs))
            time.sleep(PAUSE)
