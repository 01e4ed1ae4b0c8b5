"""Queues: paused, unserved, and slow ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ..dialects import portable
from ..listings.processes import ListedProcess
from ..listings.queues import ListedQueue
from ..listings.wording import duration, name
from .finding import Finding, many, problem, warning
from .next_jobs import backlog
from .patient import Patient, few
from .processes import described, silent_for

#: Waiting longer is slow.
SLOW = timedelta(minutes=5)


def paused(patient: Patient) -> Iterator[Finding]:
    found = [each for each in patient.queues if each.is_paused and each.ready.number]
    yield from few(is_paused(patient, each) for each in found)


def unserved(patient: Patient) -> Iterator[Finding]:
    if patient.is_alive:
        found = [each for each in patient.queues if each.is_unserved]
        found.sort(key=lambda each: -each.ready.number)
        yield from few(is_unserved(patient, each) for each in found)


def slow(patient: Patient) -> Iterator[Finding]:
    """Queues whose jobs wait for long, after whoever has the jobs that they wait behind."""
    found = [each for each in patient.queues if waits_long(each)]
    found.sort(key=lambda each: each.oldest_wait or SLOW, reverse=True)
    yield from backlog(patient, found)
    yield from few(is_slow(patient, each) for each in found)


def waits_long(queue: ListedQueue) -> bool:
    """Whether jobs wait for long in a queue though workers serve it."""
    wait = queue.oldest_wait
    return wait is not None and wait >= SLOW and not queue.is_paused and queue.workers > 0


def is_slow(patient: Patient, queue: ListedQueue) -> Finding:
    """Return the finding that jobs wait for long in a queue."""
    return warning(
        "queue-slow",
        f"{jobs(queue)} in queue {quoted(queue.name)}, the oldest for "
        f"{duration(queue.oldest_wait or SLOW)}. {load(patient, queue.name)}",
        "Let more jobs run at once (threads, processes, or another host), or see in the "
        "findings below and in the log of the workers what they do.",
    )


def is_paused(patient: Patient, queue: ListedQueue) -> Finding:
    """Return the finding that a queue is paused."""
    since = ""
    if queue.paused_since is not None:
        since = f", for {duration(patient.present - portable.aware(queue.paused_since))} now"
    return problem(
        "queue-paused",
        f"{jobs(queue)} in queue {quoted(queue.name)}, which is paused{since}.",
        f"If its jobs may run again: {patient.command('resume', queue.name)}",
    )


def is_unserved(patient: Patient, queue: ListedQueue) -> Finding:
    """Return the finding that no live worker takes jobs from a queue."""
    shown = name(queue.name)
    text = f"{jobs(queue)} in queue {quoted(queue.name)}, and no live worker serves it."
    lost = [each for each in patient.processes if _served(each, queue.name)]
    if lost:
        text += f" {described(lost[0])} did; it was heard {silent_for(lost[0])}."
    elif served := {entry for each in patient.live("worker") for entry in each.queues}:
        text += f" The live ones serve: {', '.join(sorted(map(name, served))[:20])}."
    return problem(
        "queue-unserved",
        text,
        f'Start a worker for it: add "{shown}" to the queues of a worker in STEADY_QUEUE, or run: '
        f"{patient.command('--queues', queue.name)}",
    )


def load(patient: Patient, queue_name: str) -> str:
    """Return how busy the workers of a queue are."""
    serving = [each for each in patient.processes if each.serves(queue_name)]
    if not serving:
        return "No live worker serves it."
    threads = sum(each.threads for each in serving)
    running = sum(each.running for each in serving)
    workers = many(len(serving), "live worker")
    if threads and running >= threads:
        return f"{workers} for it: all of {many(threads, 'thread')} are busy."
    return f"{workers} for it: {many(threads, 'thread')}, {many(running, 'claimed job')}."


def jobs(queue: ListedQueue) -> str:
    """Return how many jobs wait in a queue, as the beginning of a sentence."""
    return many(queue.ready, "job waits", "jobs wait")


def quoted(queue_name: object) -> str:
    """Return a name in quotation marks."""
    return f'"{name(queue_name)}"'


def _served(process: ListedProcess, queue_name: str) -> bool:
    return not process.is_live and process.row.kind == "worker" and process.would_serve(queue_name)
