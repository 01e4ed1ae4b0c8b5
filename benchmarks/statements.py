"""Statements, round trips and commits for each job: where it is enqueued, and in the workers.

A server counts them itself, from outside of the contender. SQLite is none: there the processes
count.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from types import TracebackType

from benchmarks import probe
from benchmarks.databases import Counts
from benchmarks.proxy import Proxy
from benchmarks.stage import Figures, Stage

FEW, MANY = 100, 300
"""Jobs of two runs that enqueue: between them lies what so many jobs cost, without the rest."""
PATIENCE = 30
"""Seconds for each of them."""
PAUSE = 0.02
"""Seconds between two looks at the counts."""


def count(stage: Stage) -> Figures:
    """Return the counts for each job of one kind of run."""
    if stage.database.counts() is None:
        return _traced(stage)
    settings = stage.database.settings()
    with Proxy(str(settings["HOST"]), int(str(settings["PORT"]))) as proxy:
        return _enqueued(stage, proxy) | _run(stage, proxy)


def _traced(stage: Stage) -> Figures:
    """Let the processes count their statements and commits."""
    options, environment = stage.options, {"BENCHMARK_TRACE": "1"}
    stage.reset()
    enqueued = stage.client("enqueue", FEW, options.limit, environment=environment)
    figures = {
        "statements_enqueue": enqueued["statements"],
        "commits_enqueue": enqueued["commits"],
    }
    stage.run(stage.fill("noop"), environment)
    ran = probe.effects(stage.effects)
    if ran.statements is not None and ran.commits is not None:
        figures |= {"statements_run": ran.statements, "commits_run": ran.commits}
    return figures


@dataclass(frozen=True)
class Look:
    """What the server and the proxy have counted when so many jobs were done."""

    jobs: float
    counts: Counts
    round_trips: int

    def since(self, before: Look, suffix: str) -> Figures:
        """Return what each job between two looks has cost."""
        jobs = self.jobs - before.jobs
        figures = {
            f"commits_{suffix}": (self.counts.commits - before.counts.commits) / jobs,
            f"round_trips_{suffix}": (self.round_trips - before.round_trips) / jobs,
        }
        if self.counts.statements is not None and before.counts.statements is not None:
            asked = self.counts.statements - before.counts.statements
            figures[f"statements_{suffix}"] = asked / jobs
        return figures


def _look(stage: Stage, proxy: Proxy, jobs: float) -> Look:
    counts = stage.database.counts()
    assert counts is not None
    return Look(jobs, counts, proxy.round_trips)


def _enqueued(stage: Stage, proxy: Proxy) -> Figures:
    stage.reset()
    costs = []
    for jobs in (FEW, MANY):
        before = _look(stage, proxy, 0)
        done = stage.client("enqueue", jobs, PATIENCE, environment=_way(proxy))["done"]
        after = _look(stage, proxy, done)
        costs.append((done, after.since(before, "enqueue")))
    (few, cheap), (many, dear) = costs
    if many <= few:
        return {}
    return {name: (dear[name] * many - cheap[name] * few) / (many - few) for name in dear}


def _run(stage: Stage, proxy: Proxy) -> Figures:
    jobs = stage.fill("noop")
    with Looks(stage, proxy) as looks:
        stage.run(jobs, _way(proxy))
    # From the first job on, so without start-up, and not to the end, after which queues are empty.
    amid = [look for look in looks.taken if 0 < look.jobs < jobs]
    return amid[-1].since(amid[0], "run") if len(amid) > 1 and _moved(amid) else {}


def _moved(looks: list[Look]) -> bool:
    return looks[-1].jobs > looks[0].jobs


def _way(proxy: Proxy) -> dict[str, str]:
    return {"BENCHMARK_PORT": str(proxy.port)}


class Looks:
    """A thread that looks again and again while workers run."""

    def __init__(self, stage: Stage, proxy: Proxy) -> None:
        self.taken: list[Look] = []
        self._stage, self._proxy = stage, proxy
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
            jobs = probe.effects(self._stage.effects).jobs
            self.taken.append(_look(self._stage, self._proxy, jobs))
            time.sleep(PAUSE)
