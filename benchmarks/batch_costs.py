"""What batches and graphs of jobs cost: storing them, and ending their members one by one."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from django.db import connections

from benchmarks import testbed
from benchmarks.jobs import finished
from steady_queue_core.dialects import ClaimedJob, QueueSelector, dialect_for

#: Jobs of one call of ``enqueue_many()`` where memory is to stay bounded.
CHUNK = 1_000
#: Outcomes that a worker stores at once, about as many as with jobs that do nothing.
SETTLED = 100
#: Turns before those that count.
WARM_UP = 10


class Stored(NamedTuple):
    """How long storing has taken, and by how much it has enlarged the process."""

    seconds: float
    #: Seconds of CPU time of the process.
    cpu: float
    #: Bytes at the most, above those before.
    memory: int


class Ends(NamedTuple):
    """Median seconds of ending one member; of the first ones of a batch and of its last."""

    early: float
    late: float

    @property
    def ratio(self) -> float:
        return self.late / self.early


def store_plain(alias: str, count: int) -> Stored:
    """Enqueue jobs that belong to nothing, by the thousand, in one transaction."""
    from django.db import transaction

    def store() -> None:
        with transaction.atomic(using=alias):
            enqueue("plain", count)

    return _in_a_child(alias, store)


def store_batch(alias: str, count: int, *, at_once: bool = False) -> Stored:
    """Enqueue a batch, by the thousand or in one call."""

    def store() -> None:
        from steady_queue_core import Batch

        with Batch():
            enqueue("members", count, count if at_once else CHUNK)

    return _in_a_child(alias, store)


def store_graph(alias: str, count: int) -> Stored:
    """Enqueue a workflow, each of whose nodes waits for one or two of those before it."""

    def store() -> None:
        from benchmarks.batch_tasks import noop
        from steady_queue_core import Workflow, call

        workflow = Workflow()
        task = noop.using(queue_name="graph")
        nodes = [workflow.add(call(task, 0))]
        for number in range(1, count):
            after = {nodes[(number - 1) // 2], nodes[number * 2 // 3]}
            nodes.append(workflow.add(call(task, number), after=after))
        workflow.enqueue()

    return _in_a_child(alias, store)


def settle_cost(alias: str, queue: str, count: int) -> float:
    """Claim and settle jobs as workers do; return the seconds of settling one."""
    worker = Worker(alias)
    took, settled = 0.0, 0
    while settled < count and (claims := worker.claim(queue, SETTLED)):
        took += worker.seconds_of_settling(claims)
        settled += len(claims)
    if settled < count:
        raise AssertionError(f"only {settled} jobs were ready in {queue!r}")
    return took / settled


def measure_ends(alias: str, early: int, late: int, samples: int) -> Ends:
    """End members of two batches in turns: around the ``early``-th of one, and around the
    ``late``-th of the other."""
    worker = Worker(alias)
    times: dict[int, list[float]] = {early: [], late: []}
    for position in times:
        before = position - samples // 2 - WARM_UP
        worker.add_batch(f"ends-{position}", late + samples)
        settled = 0
        while settled < before:
            claims = worker.claim(f"ends-{position}", min(SETTLED, before - settled))
            worker.seconds_of_settling(claims)
            settled += len(claims)
    for _ in range(WARM_UP + samples):
        for position, found in times.items():
            found.append(worker.seconds_of_settling(worker.claim(f"ends-{position}", 1)))
    return Ends(*(statistics.median(found[WARM_UP:]) for found in times.values()))


class Worker:
    """Claims and settles in this process."""

    def __init__(self, alias: str) -> None:
        self.alias, self.connection, self.dialect = alias, connections[alias], dialect_for(alias)
        self.dialect.prepare(self.connection, impatient=True)
        self.process = testbed.register(alias)

    def claim(self, queue: str, limit: int) -> list[ClaimedJob]:
        selector = QueueSelector(patterns=(queue,))
        return self.dialect.claim(self.connection, self.process, selector, limit)

    def seconds_of_settling(self, claims: Sequence[ClaimedJob]) -> float:
        """End these jobs well; return how long that took."""
        outcomes = [finished(claim) for claim in claims]
        began = time.perf_counter()
        held = self.dialect.settle(self.connection, outcomes)
        seconds = time.perf_counter() - began
        if len(held) != len(outcomes):
            raise AssertionError(f"{len(held)} of {len(outcomes)} outcomes were stored")
        return seconds

    def add_batch(self, queue: str, count: int) -> Any:
        """Enqueue a batch whose jobs are in this queue; return it."""
        from steady_queue_core import Batch

        with testbed.backend_on(self.alias), Batch() as batch:
            enqueue(queue, count)
        return batch


def enqueue(queue: str, count: int, chunk: int = CHUNK) -> None:
    """Enqueue jobs that do nothing, so many with one call."""
    from benchmarks.batch_tasks import noop
    from steady_queue_core import call, enqueue_many

    task = noop.using(queue_name=queue)
    for start in range(0, count, chunk):
        numbers = range(start, min(count, start + chunk))
        enqueue_many([call(task, number) for number in numbers])


def _in_a_child(alias: str, store: Callable[[], None]) -> Stored:
    """Call ``store`` in a process of its own, whose memory nothing else has enlarged."""
    connections[alias].close()  # A connection must not be there twice.
    context: Any = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_store, args=(alias, store, theirs))
    child.start()
    theirs.close()
    stored = Stored(*ours.recv())
    child.join()
    return stored


def _store(alias: str, store: Callable[[], None], pipe: Any) -> None:
    with testbed.backend_on(alias):
        connections[alias].ensure_connection()
        from benchmarks.batch_tasks import noop

        noop.enqueue(0)  # What the first call loads is no part of the cost.
        before = _reset_peak()
        began, cpu = time.perf_counter(), time.process_time()
        store()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        pipe.send((seconds, cpu, _memory("VmHWM") - before))
        connections[alias].close()


def _reset_peak() -> int:
    """Forget the largest size that this process has had; return its size now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {field}")
