"""One host whose jobs fail while those of the others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

from ..dialects import portable
from ..listings.wording import name
from ..models import FailedExecution, Job, ProcessEnd
from ..tasks.results import workers_of
from .finding import Finding, warning
from .patient import Patient

RECENT = timedelta(hours=1)
#: So many of the jobs that ended last are looked at.
MOST = 3_000
#: Fewer failures, or a smaller share of the jobs, are not worth a word; on other hosts the share
#: is so many times smaller.
LEAST, SHARE, TIMES = 10, 0.5, 3


class Ended(NamedTuple):
    """A job that has ended: which worker ran it last, and what it failed with."""

    worker: str
    error: str


def failing(patient: Patient) -> Iterator[Finding]:
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
    since = portable.storable(patient.present - RECENT)
    jobs = Job.objects.using(patient.using).filter(finished_at__gte=since).order_by("-finished_at")
    rows = list(jobs.values_list("pk", "worker_ids")[:MOST])
    failed = FailedExecution.objects.using(patient.using).filter(created_at__gte=since)
    latest = failed.order_by("-created_at").values_list("pk", "exception_class")[:MOST]
    errors = {pk: str(error) for pk, error in latest}
    return [
        Ended(workers[-1], errors.get(pk, ""))
        for pk, worker_ids in rows
        if (workers := workers_of(worker_ids))
    ]


def _hosts(patient: Patient, workers: Collection[str]) -> dict[str, str]:
    known = {each.row.name: str(each.row.hostname) for each in patient.processes}
    if gone := sorted({*workers} - {*known})[:MOST]:
        ends = ProcessEnd.objects.using(patient.using).filter(name__in=gone)
        known |= {end: str(host) for end, host in ends.values_list("name", "hostname")}
    return known


def _is_on(host: str, ended: Ended, hosts: Mapping[str, str]) -> bool:
    return hosts.get(ended.worker) == host


EXAMINATIONS = (failing,)
