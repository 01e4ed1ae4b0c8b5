"""The commands that run in a competitor's environment beside its workers: fill, enqueue, watch.

Called by the harness as ``python -m benchmarks.client COMPETITOR COMMAND ARGUMENT...`` in the
throw-away project. Prints one line of JSON; `watch` prints `ready` before.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import task_probe, trace
from benchmarks.adapters import Adapter, competitors

Figures = dict[str, float | int | bool]

PORTION = 1_000
"""Jobs that are put into the queue between two looks at the time."""
WARM_UP = 20
"""Jobs enqueued one by one before the first that counts."""
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
        adapter.fill(task, range(done, done + portion))
        done += portion
    return {"jobs": done}


def enqueue(adapter: Adapter, count: str, limit: str) -> Figures:
    """Time enqueueing one by one, or count its statements where they are traced."""
    one = adapter.enqueuer("noop")
    _timed(one, WARM_UP, float(limit))
    statements, commits = trace.counts.statements, trace.counts.commits
    calls = _timed(one, int(count), float(limit))
    done = len(calls.seconds)
    return {
        "done": done,
        "rate": done / calls.elapsed,
        "cpu_us": calls.cpu / done * 1e6,
        **_quantiles([1000 * seconds for seconds in calls.seconds]),
        "statements": (trace.counts.statements - statements) / done,
        "commits": (trace.counts.commits - commits) / done,
    }


def bulk(adapter: Adapter, count: str, limit: str) -> Figures:
    """Time enqueueing many at once; nothing where this version cannot."""
    numbers = range(BULK)
    try:
        adapter.enqueue_many("noop", numbers)
    except NotImplementedError:
        return {}
    calls = _timed(
        lambda _: adapter.enqueue_many("noop", numbers), int(count) // BULK, float(limit)
    )
    done = BULK * len(calls.seconds)
    return {"rate": done / calls.elapsed, "cpu_us": calls.cpu / done * 1e6}


def compare(adapter: Adapter, other: str, turns: str) -> Figures:
    """Return the CPU time of enqueueing as a multiple of another competitor's, on one database.

    Both take their turns in this process, so that whatever disturbs one disturbs the other: of the
    turns, the median counts.
    """
    rivals = (adapter, competitors()[other])
    one = [rival.enqueuer("noop") for rival in rivals]
    return {
        "enqueue": _times_as_much(
            [partial(_timed, call, WARM_UP, math.inf) for call in one], int(turns)
        ),
        "bulk": _times_as_much(
            [partial(rival.enqueue_many, "noop", range(BULK)) for rival in rivals], int(turns)
        ),
    }


def _times_as_much(calls: list[Callable[[], object]], turns: int) -> float:
    """Return how many times as much CPU time the first call takes as the second."""
    ratios = []
    for turn in range(-1, turns):
        mine, other = (_cpu_seconds(call) for call in calls)
        if turn >= 0:  # The first ones connect.
            ratios.append(mine / other)
    return statistics.median(ratios)


def _cpu_seconds(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


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
    _check_numbers(effects, int(jobs))
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
    stamp = adapter.enqueuer("stamp")
    stamp(-1)
    _wait_for_stamp(directory, -1, 20)
    for warm_up in range(-6, -1):
        stamp(warm_up)
        _wait_for_stamp(directory, warm_up, 10)
    called, returned = {}, {}
    pause = random.Random(1)
    for sample in range(int(samples)):
        # Not in step with anybody's polling.
        time.sleep(pause.uniform(0.02, 0.06))
        called[sample] = time.monotonic_ns()
        stamp(sample)
        returned[sample] = time.monotonic_ns()
        _wait_for_stamp(directory, sample, 10)
    started = task_probe.stamps(directory)
    # A worker can start before enqueue returns to its caller, which happens after the commit.
    waits = [max(0, started[sample] - returned[sample]) / 1e6 for sample in returned]
    whole = [(started[sample] - called[sample]) / 1e6 for sample in called]
    return {**_quantiles(waits), "max": max(waits), "call_p50": _quantiles(whole)["p50"]}


def calls(adapter: Adapter) -> Figures:
    """Count the calls of functions that jobs take."""
    from benchmarks.calls.probe import measure

    return dict(measure(adapter))


def _wait_for_stamp(directory: Path, sample: int, limit: float) -> None:
    deadline = time.monotonic() + limit
    while sample not in task_probe.stamps(directory):
        if time.monotonic() > deadline:
            raise TimeoutError(f"job {sample} has not started after {limit} s")
        time.sleep(0.002)


def _check_numbers(effects: task_probe.Effects, jobs: int) -> None:
    """See that each task was given the number of its job, where each has run once."""
    if effects.jobs == jobs and effects.total != sum(range(jobs)):
        raise ValueError(f"the numbers of {jobs} jobs add up to {effects.total}")


@dataclass(frozen=True, kw_only=True)
class Calls:
    """What calls took: the seconds of each, and in all the time and this process's CPU time."""

    seconds: list[float]
    elapsed: float
    cpu: float


def _timed(call: Callable[[int], object], count: int, limit: float) -> Calls:
    """Call with 0, 1 and so on, ``count`` times or until the time is over."""
    seconds: list[float] = []
    cpu, begin = time.process_time(), time.monotonic()
    now = begin
    while len(seconds) < count and now - begin < limit:
        before = now
        call(len(seconds))
        now = time.monotonic()
        seconds.append(now - before)
    return Calls(seconds=seconds, elapsed=now - begin, cpu=time.process_time() - cpu)


def _quantiles(values: list[float]) -> Figures:
    ordered = sorted(values)
    return {
        f"p{percent}": ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
        for percent in (50, 95, 99)
    }


def _effects_directory() -> Path:
    return Path(os.environ["BENCHMARK_EFFECTS"])


COMMANDS: dict[str, Callable[..., Figures]] = {
    function.__name__: function
    for function in (prepare, fill, enqueue, bulk, compare, watch, latency, calls)
}


def main(arguments: list[str]) -> None:
    name, command, *rest = arguments
    import django

    django.setup()
    print(json.dumps(COMMANDS[command](competitors()[name], *rest)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
