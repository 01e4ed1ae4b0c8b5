"""The next jobs: whose they are that others wait behind, and tasks that this code does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ..dialects import FairKey
from ..listings.counts import BoundedCount
from ..listings.queues import ListedQueue
from ..listings.wording import name
from ..models import ClaimedExecution, ReadyExecution, ScheduledExecution
from .finding import Finding, warning
from .patient import Patient, few

#: So many of the next jobs, and of those that run, are looked at.
NEXT, RUNNING = 1_000, 500
#: Whoever has more than this share of them has a backlog.
SHARE = 0.5
#: So many of the next jobs are looked at, of those that are ready and of those that are scheduled.
MOST_NEXT = 3_000


class Seen(NamedTuple):
    """One of the jobs that are next or run."""

    queue: str
    task: str
    #: Its key in a fair queue; empty: none.
    key: str


def backlog(patient: Patient, slow: Sequence[ListedQueue]) -> Iterator[Finding]:
    """Yield who has most of the jobs, if jobs of others wait for long in these queues."""
    if not slow:
        return
    seen, are_all = _jobs(patient)
    looks = (_of_key, _of_queue, _of_task) if len(slow) > 1 else (_of_key,)
    found = (each for look in looks for each in look(patient, seen, are_all, slow))
    # One that is of a key explains a queue and a task of whom most jobs are, too.
    yield from [*found][:1]


def _jobs(patient: Patient) -> tuple[list[Seen], bool]:
    paused = [each.name for each in patient.queues if each.is_paused]
    ready = ReadyExecution.objects.using(patient.using).order_by("rank", "turn")
    running = ClaimedExecution.objects.using(patient.using).order_by("pk")
    columns = ("queue_name", "job__task_path", "job__metadata")
    found = [
        list(rows.values_list(*columns)[: most + 1])
        for rows, most in ((ready.exclude(queue_name__in=paused), NEXT), (running, RUNNING))
    ]
    seen = [
        Seen(str(queue), str(task), FairKey.read(metadata) or "")
        for queue, task, metadata in chain(found[0][:NEXT], found[1][:RUNNING])
    ]
    return seen, len(found[0]) <= NEXT and len(found[1]) <= RUNNING


def _most(seen: Sequence[Seen], of: Callable[[Seen], str]) -> tuple[str, int]:
    """Return who has most of the jobs, and how many; nobody, if these are not most or are all."""
    [(who, number)] = Counter(map(of, seen)).most_common(1) or [("", 0)]
    return (who, number) if SHARE * len(seen) < number < len(seen) else ("", 0)


def _of_key(
    patient: Patient, seen: Sequence[Seen], are_all: bool, slow: Sequence[ListedQueue]
) -> Iterator[Finding]:
    key, number = _most(seen, lambda each: each.key)
    queues = {each.queue for each in seen if each.key == key}
    if key:
        where = f'queue "{name(min(queues))}"' if len(queues) == 1 else f"{len(queues)} queues"
        yield _found(
            f"{_share(number, seen, are_all)} have the key {name(key)!r}, in {where}: those of "
            "other keys wait behind them.",
            "Give that key less weight (shares.set_weight), or let more jobs run at once.",
        )


def _of_queue(
    patient: Patient, seen: Sequence[Seen], are_all: bool, slow: Sequence[ListedQueue]
) -> Iterator[Finding]:
    queue, number = _most(seen, lambda each: each.queue)
    others = [each.name for each in slow if each.name != queue]
    if queue and others:
        wait = "1 other queue waits" if len(others) == 1 else f"{len(others)} other queues wait"
        yield _found(
            f'{_share(number, seen, are_all)} are in queue "{name(queue)}", and {wait} beside '
            f'it, such as "{name(others[0])}".',
            "Give that queue workers of its own, and leave it out of the others: "
            f"{patient.command('--queues', queue)}. To have the others go first meanwhile: "
            f"{patient.command('pause', queue)}",
        )


def _of_task(
    patient: Patient, seen: Sequence[Seen], are_all: bool, slow: Sequence[ListedQueue]
) -> Iterator[Finding]:
    task, number = _most(seen, lambda each: each.task)
    if task:
        yield _found(
            f"{_share(number, seen, are_all)} are of the task {name(task)}, and jobs of "
            f"{len(slow)} queues wait for long.",
            "Give that task a queue with workers of its own, or a lower priority.",
        )


def _share(number: int, seen: Sequence[Seen], are_all: bool) -> str:
    those = "jobs that wait or run" if are_all else "jobs that are next or run"
    return f"{number:,} of the {len(seen):,} {those}"


def _found(text: str, remedy: str) -> Finding:
    return warning("backlog", text, remedy)


def unknown_tasks(patient: Patient) -> Iterator[Finding]:
    """Tasks of jobs that workers with this code would leave to others, or fail."""
    ready = ReadyExecution.objects.using(patient.using).order_by("rank", "turn")
    scheduled = ScheduledExecution.objects.using(patient.using).order_by("due_at", "rank", "job")
    paths: Counter[str] = Counter()
    are_all = True
    for rows in (ready, scheduled):
        found = list(map(str, rows.values_list("job__task_path", flat=True)[: MOST_NEXT + 1]))
        paths.update(found[:MOST_NEXT])
        are_all = are_all and len(found) <= MOST_NEXT
    yield from few(
        warning(
            "task-unknown",
            f"The task {name(path)}, which {BoundedCount(count, are_all).text} of the next jobs "
            "name, is not in this project.",
            "Deploy the code that has it to the workers, or add its module to "
            "STEADY_QUEUE['task_modules']. Workers without it leave such jobs to others for a "
            "while, and then fail them.",
        )
        for path, count in paths.most_common()
        if not patient.knows(path)
    )
