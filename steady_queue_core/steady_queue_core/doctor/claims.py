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
from .words import many

#: A job that runs longer is worth a look.
LONG = timedelta(hours=1)
MOST = 1_000


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
    since = portable.storable(patient.present - LONG)
    rows = ClaimedExecution.objects.using(patient.using).filter(
        process_id__in=list(live), created_at__lt=since
    )
    rows = rows.select_related("job").only("process_id", "created_at", "job__task_path")
    oldest = rows.order_by("created_at")[:5]
    for claim in oldest:
        yield warning(
            "claim-long",
            f"Job {claim.job_id} ({name(claim.job.task_path)}) was claimed "
            f"{duration(patient.present - portable.aware(claim.created_at))} ago by "
            f"{described(live[claim.process_id])}, and has not ended.",
            "See what it does: kill -USR2 to its supervisor logs that. To end it: "
            f"{patient.command('cancel', claim.job_id)}. A timeout ends such attempts by itself.",
        )


EXAMINATIONS = (of_silent_processes, without_process, long_ones)
