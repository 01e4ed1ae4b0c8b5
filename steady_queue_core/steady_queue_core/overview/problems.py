"""What is wrong, the cause first, each with the page that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from django.core.exceptions import ImproperlyConfigured

from ..dialects import INFO, portable
from ..doctor import Finding, claims, dispatchers, environment, limits, processes, queues
from ..doctor.finding import many, place, problem, warning
from ..doctor.patient import Patient
from ..listings.wording import duration, name
from .busy import LongRun, Moment
from .history import History
from .queues import Lengths

#: The pages of findings that are told as the doctor tells them; there is none for the others.
PAGES = {
    "claim-orphaned": "processes",
    "limit-stuck": "semaphores",
    "limit-miscounted": "semaphores",
    "task-unknown": "jobs",
    "schedule-task-missing": "schedules",
    "schedule-not-read": "schedules",
    "scheduler-late": "schedules",
    "scheduler-missing": "processes",
    "threads-held": "processes",
    "backlog": "jobs",
    "host-failing": "errors",
    "failures-many": "errors",
    "retention-undone": "processes",
}
#: So many queues with the same problem are told.
MOST = 5
#: Failures of ten minutes that are worth a word, and how their share has to compare.
LEAST_FAILURES, TIMES_USUAL, LEAST_SHARE, SHARE_ALONE = 10, 3, 0.05, 0.5
#: A job that runs so many times as long as usual is stuck, but not before some time.
STUCK_TIMES, STUCK_AFTER = 10, timedelta(minutes=5)


@dataclass(frozen=True)
class Problem:
    """A finding, and the page of the admin where it can be mended, or seen."""

    finding: Finding
    #: ``processes``, ``ended``, ``semaphores``, ``schedules``, ``errors``, ``queue``, ``job``,
    #: ``jobs``; or empty.
    page: str
    #: The queue or job that the page is of.
    key: str = ""
    #: Filters of a list of jobs.
    filters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, finding: Finding) -> Problem:
        """Return the problem that a finding of the doctor is."""
        return cls(finding, PAGES.get(finding.code, ""))


@dataclass(frozen=True)
class Evidence:
    """What problems are looked for in."""

    patient: Patient
    moment: Moment
    lengths: Lengths
    history: History
    longest: Sequence[LongRun]
    #: What the doctor has found beyond that.
    findings: Sequence[Finding] = ()


def problems(evidence: Evidence) -> list[Problem]:
    """Return what is wrong, what explains most first. Nothing is read."""
    found = [each for looks in LOOKS for each in looks(evidence)]
    seen = {each.finding.code for each in found}
    found += [Problem.of(each) for each in evidence.findings if each.code not in seen]
    shown = [each for each in found if each.finding.severity != INFO]
    return sorted(shown, key=lambda each: place(each.finding))


def of_processes(evidence: Evidence) -> Iterator[Problem]:
    """Processes that are missing, silent or old, and what they hold."""
    looks: tuple[Callable[[Patient], Iterable[Finding]], ...] = (
        *processes.EXAMINATIONS,
        claims.of_silent_processes,
    )
    for look in looks:
        yield from (Problem(each, "processes") for each in look(evidence.patient))
    moment = evidence.moment
    for each in environment.compared(moment.before, moment.present, moment.after):
        yield Problem(each, "processes")


def of_queues(evidence: Evidence) -> Iterator[Problem]:
    """Queues that are paused, served by nobody, slow or full."""
    patient = evidence.patient
    waiting = [each for each in patient.queues if each.ready.number]
    waiting.sort(key=lambda each: -each.ready.number)
    for each in [queue for queue in waiting if queue.is_paused][:MOST]:
        yield Problem(queues.is_paused(patient, each), "queue", each.name)
    for each in [queue for queue in waiting if patient.is_alive and queue.is_unserved][:MOST]:
        yield Problem(queues.is_unserved(patient, each), "processes")
    for each in [queue for queue in waiting if queues.waits_long(queue)][:MOST]:
        yield Problem(queues.is_slow(patient, each), "jobs", filters=_ready(each.name))
    with suppress(ImproperlyConfigured):  # Reported by the system checks.
        counts = {each.name: each.ready.number for each in waiting}
        yield from islice(_of_limits(patient.using, counts), MOST)


def _of_limits(using: str, counts: Mapping[str, int]) -> Iterator[Problem]:
    for queue, alias, most in limits.limits_of(using, counts):
        if most <= counts[queue]:
            finding = limits.is_full(queue, alias, most)
            yield Problem(finding, "jobs", filters=_ready(queue))


def of_dispatchers(evidence: Evidence) -> Iterator[Problem]:
    """Scheduled jobs that are overdue."""
    for each in dispatchers.overdue(evidence.patient):
        if each.code == "dispatcher-missing":
            yield Problem(each, "processes")
        else:
            yield Problem(each, "jobs", filters={"state": "scheduled"})


def of_schedulers(evidence: Evidence) -> Iterator[Problem]:
    """Recurring tasks without a scheduler."""
    patient, enabled = evidence.patient, evidence.lengths.schedules
    if enabled.number and patient.is_alive and not patient.live("scheduler"):
        finding = problem(
            "scheduler-missing",
            f"{many(enabled, 'recurring task is', 'recurring tasks are')} enabled, and no "
            "scheduler is alive: nobody enqueues the next runs.",
            "Start one: a supervisor without --skip-recurring has one, if the project has "
            "recurring tasks; or run: python manage.py steady_queue --only schedule",
        )
        yield Problem(finding, "processes")


def of_limits(evidence: Evidence) -> Iterator[Problem]:
    """Jobs that wait for long for a concurrency key."""
    blocked = evidence.lengths.states["blocked"]
    if blocked.number and blocked.first is not None:
        wait = evidence.moment.present - portable.aware(blocked.first)
        if wait > limits.LONG:
            finding = warning(
                "limit-busy",
                f"{many(blocked, 'job is', 'jobs are')} blocked by concurrency limits, the oldest "
                f"for {duration(wait)}.",
                "See which jobs hold the permits, and what these do; or raise the limit: 'to' of "
                f"@limits_concurrency. More tells: {evidence.patient.command('doctor')}",
            )
            yield Problem(finding, "semaphores")


def of_failures(evidence: Evidence) -> Iterator[Problem]:
    """Many more jobs that fail than usual, and attempts that were lost with their processes."""
    history = evidence.history
    lately, usual = history.up_to_now, history.day_before.failed_share
    share = lately.failed_share or 0.0
    least = SHARE_ALONE if usual is None else max(TIMES_USUAL * usual, LEAST_SHARE)
    if lately.failed >= LEAST_FAILURES and share > least:
        before = "" if usual is None else f", and {usual:.1%} in the day before"
        finding = warning(
            "failures-many",
            f"{many(lately.failed, 'job has', 'jobs have')} failed in the last ten minutes, "
            f"{share:.0%} of those that have ended{before}.",
            "See their errors. Was something deployed just then? Once the cause is mended, retry "
            "them.",
        )
        yield Problem(finding, "errors")
    if lost := history.last_hour.lost:
        finding = warning(
            "attempts-lost",
            f"{many(lost, 'attempt was', 'attempts were')} lost with their processes within the "
            "last hour: these were killed, or crashed.",
            "See which ones, and why: for want of memory, most often. In a terminal: "
            f"{evidence.patient.command('processes', options=['--ended'])}",
        )
        yield Problem(finding, "ended")


def of_long_runs(evidence: Evidence) -> Iterator[Problem]:
    """Jobs that run for long."""
    yield from (_is_stuck(run) for run in evidence.longest if _seems_stuck(run))


def _seems_stuck(run: LongRun) -> bool:
    if run.process is None or not run.process.is_live:
        return False  # Told of with the process.
    times = run.times_usual or 0.0
    return run.since > claims.LONG or (times >= STUCK_TIMES and run.since >= STUCK_AFTER)


def _is_stuck(run: LongRun) -> Problem:
    usual = "" if run.times_usual is None else f", {run.times_usual:,.0f} times as long as usual"
    finding = warning(
        "claim-long",
        f"Job {run.job_id} ({name(run.task)}) has been running for {duration(run.since)}{usual}.",
        "See what it does: kill -USR2 to its supervisor logs that. Cancel it if it is stuck. A "
        "timeout ends such attempts by itself.",
    )
    return Problem(finding, "job", str(run.job_id))


def _ready(queue: str) -> dict[str, str]:
    return {"state": "ready", "queue": queue}


LOOKS: tuple[Callable[[Evidence], Iterator[Problem]], ...] = (
    of_processes,
    of_queues,
    of_dispatchers,
    of_schedulers,
    of_limits,
    of_failures,
    of_long_runs,
)
