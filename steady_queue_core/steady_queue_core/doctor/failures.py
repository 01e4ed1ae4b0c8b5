"""Many jobs that fail, hosts where they do, and tasks that take longer than a stop of a worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

from django.db.models import QuerySet

from ..dialects import portable
from ..errors import ReportedTaskError, TaskTimeout
from ..listings.counts import count_each
from ..listings.wording import duration, name
from ..models import FailedExecution, Job, ProcessEnd
from ..tasks.results import workers_of
from .finding import Finding, many, path_of, warning
from .patient import Patient

RECENT = timedelta(hours=1)
#: So many of the jobs that ended last are looked at: for errors and times, and for their hosts.
MOST_READ, MOST_ENDED = 1_000, 3_000
#: Fewer failures, or a smaller share of the jobs, are not many; on other hosts the share is so many
#: times smaller.
LEAST, SHARE, TIMES = 10, 0.5, 3


def _lately(patient: Patient) -> tuple[QuerySet[FailedExecution], QuerySet[Job]]:
    """Return the jobs that have failed lately, and those that have ended, the latest first."""
    since = portable.storable(patient.present - RECENT)
    failed = FailedExecution.objects.using(patient.using).filter(created_at__gte=since)
    ended = Job.objects.using(patient.using).filter(finished_at__gte=since)
    return failed.order_by("-created_at"), ended.order_by("-finished_at")


def failing(patient: Patient) -> Iterator[Finding]:
    failed, ended = _lately(patient)
    failures, endings = count_each(patient.using, [failed, ended])
    if failures.number < LEAST or failures.number < SHARE * endings.number:
        return
    errors = Counter(failed.values_list("exception_class", flat=True)[:MOST_READ])
    [(commonest, number)] = errors.most_common(1) or [("", 0)]
    what = f", most of them with {name(commonest)}" if 2 * number > errors.total() else ""
    yield warning(
        "failures-many",
        f"{many(failures, 'job has', 'jobs have')} failed within an hour, of {endings.text} that "
        f"have ended{what}.",
        "See their errors in the admin. Once the cause is mended, retry them there.",
    )


class Ended(NamedTuple):
    """A job that has ended: which worker ran it last, and what it failed with."""

    worker: str
    error: str


def failing_host(patient: Patient) -> Iterator[Finding]:
    """The host on which most jobs fail, if there are others where they do not."""
    ended = _ended(patient)
    hosts = _hosts(patient, {each.worker for each in ended})
    number = Counter(hosts[each.worker] for each in ended if each.worker in hosts)
    failed = Counter(hosts[each.worker] for each in ended if each.worker in hosts and each.error)
    host, failures = next(iter(failed.most_common(1)), ("", 0))
    others, others_failed = number.total() - number[host], failed.total() - failures
    if failures < max(LEAST, SHARE * number[host]) or not others:
        return
    if TIMES * others_failed * number[host] > failures * others:
        return
    errors = Counter(each.error for each in ended if each.error and _is_on(host, each, hosts))
    yield warning(
        "host-failing",
        f"{failures:,} of {number[host]:,} jobs that ended on host {name(host)} within an hour "
        f"have failed, with {name(errors.most_common(1)[0][0])} most often, and {others_failed:,} "
        f"of {others:,} on the other hosts.",
        "See what is different there: the environment, the settings, the version of the code, the "
        "network, the disk. Stop its workers until then, and retry the jobs afterwards: "
        f"{patient.command('errors')}",
    )


def _ended(patient: Patient) -> list[Ended]:
    failed, ended = _lately(patient)
    rows = list(ended.values_list("pk", "worker_ids")[:MOST_ENDED])
    latest = failed.values_list("pk", "exception_class")[:MOST_ENDED]
    errors = {pk: str(error) for pk, error in latest}
    return [
        Ended(workers[-1], errors.get(pk, ""))
        for pk, worker_ids in rows
        if (workers := workers_of(worker_ids))
    ]


def _hosts(patient: Patient, workers: Collection[str]) -> dict[str, str]:
    known = {each.row.name: str(each.row.hostname) for each in patient.processes}
    if gone := sorted({*workers} - {*known})[:MOST_ENDED]:
        ends = ProcessEnd.objects.using(patient.using).filter(name__in=gone)
        known |= {end: str(host) for end, host in ends.values_list("name", "hostname")}
    return known


def _is_on(host: str, ended: Ended, hosts: Mapping[str, str]) -> bool:
    return hosts.get(ended.worker) == host


def shutdown_timeout(patient: Patient) -> Iterator[Finding]:
    _, ended = _lately(patient)
    columns = ("pk", "task_path", "last_attempted_at", "finished_at")
    latest = ended.values_list(*columns)[:MOST_READ]
    timeout = patient.options.shutdown_timeout
    took = [
        (finished_at - started_at, pk, path)
        for pk, path, started_at, finished_at in latest
        if started_at is not None and finished_at - started_at > timeout
    ]
    others = _ended_by_others(patient.using, [pk for _, pk, _ in took])
    ran = [each for each in took if each[1] not in others]
    if ran:
        longest, pk, path = max(ran)
        yield warning(
            "shutdown-timeout-short",
            f"Job {pk} ({name(path)}) took {duration(longest)}, and a worker that stops interrupts "
            f"tasks after {duration(timeout)}.",
            "Raise STEADY_QUEUE['shutdown_timeout'] beyond that, and the time that whatever "
            "stops the supervisor gives it; or let the task continue from a checkpoint.",
        )


def _ended_by_others(using: str, ids: list[int]) -> set[int]:
    """Return those of these jobs that have not ended when their last attempt did: somebody has
    cancelled them, they expired, or their process was lost."""
    failed = FailedExecution.objects.using(using).filter(pk__in=ids)
    of_queue = failed.filter(exception_class__startswith=f"{TaskTimeout.__module__}.")
    own = [path_of(each) for each in (TaskTimeout, ReportedTaskError)]
    return {*of_queue.exclude(exception_class__in=own).values_list("pk", flat=True)}


#: Of jobs that have failed.
EXAMINATIONS = (failing_host, failing)
