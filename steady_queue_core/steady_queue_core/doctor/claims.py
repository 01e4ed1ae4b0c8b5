"""Claims: of processes that are gone, and long ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Exists, OuterRef

from ..dialects import portable
from ..listings.counts import BoundedCount
from ..listings.wording import duration, name
from ..models import ClaimedExecution, Process
from .finding import Finding, problem, warning
from .patient import Patient
from .processes import START, described, silent_for
from .round import few
from .usual import times_usual, usual_times
from .words import many

#: A job that runs longer is worth a look.
LONG = timedelta(hours=1)
#: One that runs so many times as long as usual is stuck, but not before some time.
STUCK_TIMES, STUCK_AFTER = 10, timedelta(minutes=5)
MOST = 1_000
#: Long claims that are compared with what is usual, and of which are told.
MOST_LONG, MOST_TOLD = 100, 5


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
    since = portable.storable(patient.present - STUCK_AFTER)
    rows = ClaimedExecution.objects.using(patient.using).filter(
        process_id__in=list(live), created_at__lt=since
    )
    rows = rows.select_related("job").only("process_id", "created_at", "job__task_path")
    oldest = list(rows.order_by("created_at")[:MOST_LONG])
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


EXAMINATIONS = (of_silent_processes, without_process, long_ones)
