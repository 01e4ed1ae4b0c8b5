"""The commands that run in a competitor's environment beside its workers: fill, enqueue, watch.

Called by the harness as ``python -m benchmarks.client COMPETITOR COMMAND ARGUMENT...`` in the
throw-away project. Prints one line of JSON; `watch` prints `ready` before.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import task_probe, trace
from benchmarks.adapters import Adapter, competitors

Figures = dict[str, float | int | bool]

PORTION = 1_000
"""Jobs that are put into the queue between two looks at the time."""
BULK = 500
"""Jobs in one call of an interface that enqueues many."""


def prepare(adapter: Adapter) -> Figures:
    """Make the tables."""
    adapter.prepare()
    return {}


def fill(adapter: Adapter, task: str, count: str, limit: str) -> Figures:
    """Enqueue jobs for a drain, or as many as the time allows."""
    done, deadline = 0, time.monotonic() + float(limit)
    while done < int(count) and time.monotonic() < deadline:
        portion = min(PORTION, int(count) - done)
        adapter.fill(task, portion)
        done += portion
    return {"jobs": done}


def enqueue(adapter: Adapter, count: str, limit: str) -> Figures:
    """Time enqueueing one by one, or count its statements where they are traced."""
    adapter.enqueue("noop", 20)
    statements, commits = trace.counts.statements, trace.counts.commits
    done, seconds = _timed(lambda: adapter.enqueue("noop", 20), 20, int(count), float(limit))
    return {
        "done": done,
        "rate": done / seconds,
        "statements": (trace.counts.statements - statements) / done,
        "commits": (trace.counts.commits - commits) / done,
    }


def bulk(adapter: Adapter, count: str, limit: str) -> Figures:
    """Time enqueueing many at once; nothing where this version cannot."""
    try:
        adapter.enqueue_many("noop", BULK)
    except NotImplementedError:
        return {}
    done, seconds = _timed(
        lambda: adapter.enqueue_many("noop", BULK), BULK, int(count), float(limit)
    )
    return {"rate": done / seconds}


def watch(adapter: Adapter, jobs: str, limit: str) -> Figures:
    """Wait until all jobs have run and their outcomes are stored, or until the time is over.

    While jobs run, only their marks are looked at: no query competes with the workers.
    """
    adapter.unfinished(int(jobs))
    print("ready", flush=True)
    directory = _effects_directory()
    boot = time.monotonic() + 20
    while not task_probe.effects(directory).jobs:
        if time.monotonic() > boot:
            raise TimeoutError("no job has started after 20 s")
        time.sleep(0.005)
    deadline = time.monotonic() + float(limit)
    while time.monotonic() < deadline:
        effects = task_probe.effects(directory)
        if effects.jobs >= int(jobs):
            while adapter.unfinished(int(jobs)) > 0 and time.monotonic() < deadline + 5:
                time.sleep(0.003)
            end = time.monotonic_ns()
            left = adapter.unfinished(int(jobs))
            break
        time.sleep(0.005)
    else:
        effects, end = task_probe.effects(directory), time.monotonic_ns()
        left = int(jobs) - effects.jobs
    return {
        "ran": task_probe.effects(directory).jobs,
        "left": left,
        "first_ns": effects.first_ns,
        "end_ns": end,
        "rate": effects.jobs / ((end - effects.first_ns) / 1e9),
        "processes": effects.processes,
        "cpu_us": effects.cpu_us,
    }


def latency(adapter: Adapter, samples: str) -> Figures:
    """Enqueue one job at a time on an idle system; note when its enqueue began and returned."""
    directory = _effects_directory()
    adapter.stamp(-1)
    _wait_for_stamp(directory, -1, 20)
    for warm_up in range(-6, -1):
        adapter.stamp(warm_up)
        _wait_for_stamp(directory, warm_up, 10)
    called, returned = {}, {}
    pause = random.Random(1)
    for sample in range(int(samples)):
        # Not in step with anybody's polling.
        time.sleep(pause.uniform(0.02, 0.06))
        called[sample] = time.monotonic_ns()
        adapter.stamp(sample)
        returned[sample] = time.monotonic_ns()
        _wait_for_stamp(directory, sample, 10)
    started = task_probe.stamps(directory)
    # A worker can start before enqueue returns to its caller, which happens after the commit.
    waits = sorted(max(0, started[sample] - returned[sample]) / 1e6 for sample in returned)
    whole = sorted((started[sample] - called[sample]) / 1e6 for sample in called)
    return {
        "p50": _quantile(waits, 0.5),
        "p95": _quantile(waits, 0.95),
        "max": waits[-1],
        "call_p50": _quantile(whole, 0.5),
    }


def _wait_for_stamp(directory: Path, sample: int, limit: float) -> None:
    deadline = time.monotonic() + limit
    while sample not in task_probe.stamps(directory):
        if time.monotonic() > deadline:
            raise TimeoutError(f"job {sample} has not started after {limit} s")
        time.sleep(0.002)


def _timed(call: Callable[[], None], each: int, count: int, limit: float) -> tuple[int, float]:
    """Call until ``count`` jobs are enqueued or the time is over."""
    done, begin = 0, time.monotonic()
    while done < count and time.monotonic() - begin < limit:
        call()
        done += each
    return done, time.monotonic() - begin


def _quantile(ordered: list[float], q: float) -> float:
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def _effects_directory() -> Path:
    return Path(os.environ["BENCHMARK_EFFECTS"])


COMMANDS: dict[str, Callable[..., Figures]] = {
    function.__name__: function for function in (prepare, fill, enqueue, bulk, watch, latency)
}


def main(arguments: list[str]) -> None:
    name, command, *rest = arguments
    import django

    django.setup()
    print(json.dumps(COMMANDS[command](competitors()[name], *rest)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
