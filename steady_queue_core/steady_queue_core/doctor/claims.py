"""Claims: of processes that are gone, long ones, and those that keep threads from other jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from operator import add

from django.db.models import Exists, OuterRef

from ..dialects import portable
from ..listings.counts import BoundedCount
from ..listings.processes import ListedProcess
from ..listings.wording import duration, name
from ..models import ClaimedExecution, Process, Statistic
from ..statistics import histogram
from ..statistics.tally import HOUR, MINUTE, RECENT_HOUR, number
from .finding import Finding, many, problem, warning
from .patient import Patient, few
from .processes import START, described, silent_for
from .queues import waits_long

#: A job that runs longer is worth a look.
LONG = timedelta(hours=1)
#: One that runs so many times as long as usual is stuck, but not before some time.
STUCK_TIMES, STUCK_AFTER = 10, timedelta(minutes=5)
MOST = 1_000
#: Long claims that are compared with what is usual, and of which are told.
MOST_LONG, MOST_TOLD = 100, 5
#: A job that runs longer holds its thread.
LONG_HELD = timedelta(minutes=5)
#: Whoever has lost this share of the threads is told of.
SHARE_HELD = 0.5
#: Claims that are looked at, those of the longest first.
MOST_HELD = 1_000
#: Minutes of the past; rows that are read of them, those of the last minutes first.
PAST, MOST_ROWS = 24 * 60, 3_000
#: Fewer attempts tell nothing of how long the next one takes.
LEAST_ATTEMPTS = 20
#: So many of the attempts took no longer than usual.
USUAL_SHARE = 0.95


def of_silent_processes(patient: Patient) -> Iterator[Finding]:
    silent = [each for each in patient.processes if each.running and not each.is_live]
    yield from few(
        problem(
            "claim-stale",
            f"{described(each)} has claimed {many(each.running, 'job')}, and was heard "
            f"{silent_for(each)}: these do not go on.",
            remedy(patient),
        )
        for each in silent
    )


def remedy(patient: Patient) -> str:
    """Return what to do about claims whose process is gone."""
    if not patient.live("supervisor"):
        return f"A supervisor ends such claims, and none is alive. {START}"
    return (
        "A live supervisor ends such claims within process_alive_threshold. If it does not: see "
        "its log. If the process runs, its host is overloaded, suspended or cut off."
    )


def without_process(patient: Patient) -> Iterator[Finding]:
    registered = Process.objects.using(patient.using).filter(pk=OuterRef("process_id"))
    rows = ClaimedExecution.objects.using(patient.using).filter(~Exists(registered))
    found = list(rows.order_by("job_id").values_list("job_id", flat=True)[:MOST])
    if found:
        number = BoundedCount(len(found), exact=len(found) < MOST)
        yield problem(
            "claim-orphaned",
            f"{many(number, 'job is', 'jobs are')} claimed by a process that is not registered, "
            f"among them job {found[0]}: that does not go on.",
            remedy(patient),
        )


def long_ones(patient: Patient) -> Iterator[Finding]:
    live = {each.pk: each for each in patient.processes if each.is_live}
    oldest = _oldest(patient, live, STUCK_AFTER, MOST_LONG)
    usual = usual_times(patient, {str(each.job.task_path) for each in oldest})
    told = 0
    for claim in oldest:
        age = patient.present - portable.aware(claim.created_at)
        times = times_usual(age, usual.get(str(claim.job.task_path)))
        if told >= MOST_TOLD or (age <= LONG and times < STUCK_TIMES):
            continue
        told += 1
        than = f": {times:,.0f} times as long as usual" if times else ""
        yield warning(
            "claim-long",
            f"Job {claim.job_id} ({name(claim.job.task_path)}) was claimed {duration(age)} ago by "
            f"{described(live[claim.process_id])}, and has not ended{than}.",
            "See what it does: kill -USR2 to its supervisor logs that. To end it: "
            f"{patient.command('cancel', claim.job_id)}. A timeout ends such attempts by itself.",
        )


def _oldest(
    patient: Patient, processes: Iterable[int], age: timedelta, most: int
) -> list[ClaimedExecution]:
    """Return the claims of these processes that are older, the oldest first."""
    before = portable.storable(patient.present - age)
    rows = ClaimedExecution.objects.using(patient.using).filter(
        process_id__in=list(processes), created_at__lt=before
    )
    rows = rows.select_related("job").only("process_id", "created_at", "job__task_path")
    return list(rows.order_by("created_at", "pk")[:most])


def held(patient: Patient) -> Iterator[Finding]:
    """Workers most of whose threads have had the same jobs for long."""
    slow = [each.name for each in patient.queues if waits_long(each)]
    workers = {each.pk: each for each in patient.processes if any(map(each.serves, slow))}
    claims = defaultdict(list)
    for claim in _oldest(patient, workers, LONG_HELD, MOST_HELD) if workers else ():
        claims[claim.process_id].append(claim)
    yield from few(
        _is_held(patient, workers[process], of_process)
        for process, of_process in claims.items()
        if len(of_process) >= SHARE_HELD * workers[process].threads > 0
    )


def _is_held(patient: Patient, process: ListedProcess, claims: list[ClaimedExecution]) -> Finding:
    threads, first = process.threads, claims[0]
    age = patient.present - portable.aware(first.created_at)
    return warning(
        "threads-held",
        f"{min(len(claims), threads)} of {many(threads, 'thread')} of {described(process)} have "
        f"had the same jobs for up to {duration(age)}, while others wait: job {first.pk} "
        f"({name(first.job.task_path)}) for the longest.",
        "See what they do: kill -USR2 to its supervisor logs that. To end that one: "
        f"{patient.command('cancel', first.pk)}. A timeout ends such attempts by itself.",
    )


def usual_times(patient: Patient, task_paths: Collection[str]) -> dict[str, timedelta]:
    """Return how long the attempts at these tasks take as a rule, as far as that is known."""
    since = int(patient.present.timestamp() // 60) - PAST
    counted: dict[str, list[int]] = {}
    longest: Counter[str] = Counter()
    for span in (MINUTE, RECENT_HOUR, HOUR) if task_paths else ():
        rows = Statistic.objects.using(patient.using).filter(span=span, minute__gte=since)
        columns = ("task_path", "run_histogram", "run_max")
        for path, text, most in rows.order_by("-minute").values_list(*columns)[:MOST_ROWS]:
            if path in task_paths:
                before = counted.get(path, [0] * histogram.SIZE)
                counted[path] = [*map(add, before, histogram.read(text))]
                longest[path] = max(longest[path], number(most))
    return {
        path: timedelta(milliseconds=usual)
        for path, counts in counted.items()
        if sum(counts) >= LEAST_ATTEMPTS
        and (usual := histogram.quantile(counts, USUAL_SHARE, longest[path])) is not None
    }


def times_usual(age: timedelta, usual: timedelta | None) -> float:
    """Return how many times as long as usual something takes; 0.0 if that is not known."""
    return age / usual if usual else 0.0
