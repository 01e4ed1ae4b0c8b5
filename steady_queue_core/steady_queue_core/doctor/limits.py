"""Concurrency limits that block jobs without need, or for long, and full queues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from ..configured_backends import backends_on
from ..dialects import portable
from ..listings.counts import count_each
from ..listings.wording import duration, name
from ..models import BlockedExecution, ClaimedExecution, Permit, ReadyExecution, Semaphore
from .finding import Finding, many, problem, warning
from .patient import Patient, few
from .processes import described

MOST = 1_000
#: A job that waits for a permit for longer may wait for one that hangs.
LONG = timedelta(minutes=5)
#: Keys that are looked at, each found by one step in an index; and jobs of each.
MOST_KEYS, MOST_JOBS = 50, 1_000
#: Holders of a key among which one that runs is looked for.
MOST_HOLDERS = 1_000
#: Larger limits of queues are not counted up to.
MOST_COUNTED = 100_000


def stuck(patient: Patient) -> Iterator[Finding]:
    rows = BlockedExecution.objects.using(patient.using)
    first = rows.order_by("concurrency_key", "rank", "job").values_list("pk", flat=True)
    ids = list(first[:MOST])
    # In one statement: permits pass from job to job meanwhile.
    without = rows.filter(~Exists(holders(patient, OuterRef("concurrency_key"))), pk__in=ids)
    found = first_jobs(without.order_by("pk"))
    yield from few(is_stuck(patient, *each) for each in found.items())


def first_jobs(blocked: QuerySet[BlockedExecution]) -> dict[str, int]:
    """Return the first of these jobs of each key."""
    found: dict[str, int] = {}
    for key, job_id in blocked.values_list("concurrency_key", "pk"):
        found.setdefault(key, job_id)
    return found


def holders(patient: Patient, key: Any) -> QuerySet[Permit]:
    """Return the permits of a key that belong to a job which is ready or runs."""
    using = patient.using
    ready = ReadyExecution.objects.using(using).filter(pk=OuterRef("pk"))
    claimed = ClaimedExecution.objects.using(using).filter(pk=OuterRef("pk"))
    return Permit.objects.using(using).filter(Exists(ready) | Exists(claimed), key=key)


def is_stuck(patient: Patient, key: object, job_id: int) -> Finding:
    """Return the finding that a key blocks jobs, this one among them, and nobody holds it."""
    return problem(
        "limit-stuck",
        f"Jobs are blocked by the concurrency key {name(key)!r}, which no job holds.",
        maintenance(patient, job_id),
    )


def maintenance(patient: Patient, job_id: int) -> str:
    """Return what to do about a key whose permits are wrong, and about a job that it blocks."""
    return (
        "A dispatcher with concurrency_maintenance repairs it, every 10 minutes by default: see "
        f"that one is alive. Single jobs can run now: {patient.command('run-now', job_id)}"
    )


def miscounted(patient: Patient) -> Iterator[Finding]:
    blocked = BlockedExecution.objects.using(patient.using).order_by("pk")
    yield from few(of_keys(patient, first_jobs(blocked[:MOST])))


def of_keys(patient: Patient, jobs: Mapping[str, int]) -> Iterator[Finding]:
    """Yield which keys let fewer jobs run than they should; each blocks one of ``jobs``."""
    for key, limit in _wrong(patient, jobs):
        yield _is_miscounted(patient, key, limit, jobs[key])


def _is_miscounted(patient: Patient, key: str, limit: object, job_id: int) -> Finding:
    return warning(
        "limit-miscounted",
        f"The concurrency key {name(key)!r} blocks jobs, and fewer than {name(limit)} run: permits "
        "are free, or belong to jobs that neither wait nor run.",
        maintenance(patient, job_id),
    )


def _wrong(patient: Patient, keys: Collection[str]) -> list[tuple[str, int]]:
    """Return those of the keys that block jobs for no good reason, though not all jobs: these are
    stuck."""
    using, key = patient.using, OuterRef("pk")
    held = Permit.objects.using(using).filter(key=key).order_by()
    number = held.values("key").annotate(number=Count("pk")).values("number")
    left = Greatest(F("limit") - Coalesce(Subquery(number), Value(0)), Value(0))
    waiting = BlockedExecution.objects.using(using).filter(concurrency_key=key)
    free = Greatest(F("value"), Value(0))
    semaphores: Any = Semaphore.objects.using(using).filter(pk__in=list(keys))
    semaphores = semaphores.annotate(left=left, free=free)
    # In one statement: permits pass from job to job meanwhile.
    wrong = semaphores.filter(
        Q(value__gt=0) | ~Q(free=F("left")) | Q(Exists(_lost(using).filter(key=key))),
        Exists(waiting),
        Exists(holders(patient, key)),
    )
    return list(wrong.order_by("pk").values_list("pk", "limit"))


def _lost(using: str) -> Any:
    ready = ReadyExecution.objects.using(using).filter(pk=OuterRef("pk"))
    claimed = ClaimedExecution.objects.using(using).filter(pk=OuterRef("pk"))
    return Permit.objects.using(using).filter(~Exists(ready), ~Exists(claimed))


def held_for_long(patient: Patient) -> Iterator[Finding]:
    """Keys whose jobs have waited for long, with who holds them."""
    yield from few(found for key in _blocked_keys(patient.using) for found in _held(patient, key))


def _blocked_keys(using: str) -> Iterator[str]:
    rows = BlockedExecution.objects.using(using).order_by("concurrency_key", "rank", "job")
    keys = rows.values_list("concurrency_key", flat=True)
    key = keys.first()
    for _ in range(MOST_KEYS):
        if key is None:
            return
        yield key
        key = keys.filter(concurrency_key__gt=key).first()


def _held(patient: Patient, key: str) -> Iterator[Finding]:
    rows = BlockedExecution.objects.using(patient.using).filter(concurrency_key=key)
    [count] = count_each(patient.using, [rows.order_by("rank", "job")], "created_at", cap=MOST_JOBS)
    held = list(holders(patient, key).order_by("pk").values_list("pk", flat=True)[:MOST_HOLDERS])
    if count.first is None or not held:
        return
    wait = patient.present - portable.aware(count.first)
    if wait > LONG:
        text, remedy = _holder(patient, held)
        yield warning(
            "limit-busy",
            f"{many(count, 'job waits', 'jobs wait')} for the concurrency key {name(key)!r}, for "
            f"up to {duration(wait)}: {text} holds it.",
            f"{remedy} Or raise the limit: 'to' of @limits_concurrency.",
        )


def _holder(patient: Patient, held: list[int]) -> tuple[str, str]:
    """Return which job holds a key, one that runs before those that have not started, and what
    there is to be seen of it."""
    using = patient.using
    claim = ClaimedExecution.objects.using(using).filter(pk__in=held).order_by("created_at").first()
    if claim is not None:
        who = described(patient.process(claim.process_id))
        since = duration(patient.present - portable.aware(claim.created_at))
        return (
            f"job {claim.pk}, claimed {since} ago by {who},",
            "See what that job does: kill -USR2 to its supervisor logs that.",
        )
    ready = ReadyExecution.objects.using(using).filter(pk__in=held).first()
    job_id, where = held[0], ""
    if ready is not None:
        job_id = ready.pk
        where = f', which is ready in queue "{name(ready.queue_name)}" and has not started,'
    remedy = f"See why that job waits: {patient.command('doctor', job_id)}."
    return f"job {job_id}{where}", remedy


def full_queues(patient: Patient) -> Iterator[Finding]:
    """Queues that take no more jobs."""
    database = patient.database
    names = [each.name for each in patient.queues if each.ready.number]
    for queue, alias, most in limits_of(patient.using, names):
        if database.dialect.count_ready(database.connection, queue, most) >= most:
            yield is_full(queue, alias, most)


def limits_of(using: str, queues: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the limits of queues, as far as they are counted up to: queue, backend, limit."""
    limits = {
        alias: backend.settings.queue_limits
        for alias, backend in backends_on(using).items()
        if backend.settings.queue_limits is not None
    }
    for queue in queues if limits else ():
        for alias, of_backend in limits.items():
            most = of_backend and of_backend.of(queue)
            if most and most <= MOST_COUNTED:
                yield queue, alias, most


def is_full(queue: str, alias: str, most: int) -> Finding:
    """Return the finding that a queue takes no more jobs."""
    return problem(
        "queue-full",
        f'The queue "{name(queue)}" has the {many(most, "ready job")} that '
        f"queue_limits of TASKS[{alias!r}] allows: enqueueing raises QueueFull.",
        "Let more jobs run at once, or raise the limit.",
    )


#: Of permits that are wrong.
EXAMINATIONS = (stuck, miscounted)
