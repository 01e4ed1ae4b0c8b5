"""What makes jobs wait although all is well: keys that are held for long, and full queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from ..configured_backends import backends_on
from ..dialects import portable
from ..listings.counts import count_each
from ..listings.wording import duration, name
from ..models import BlockedExecution, ClaimedExecution, ReadyExecution
from .finding import Finding, problem, warning
from .limits import holders
from .patient import Patient
from .processes import described
from .round import few
from .words import many

#: A job that waits for a permit for longer may wait for one that hangs.
LONG = timedelta(minutes=5)
#: Keys that are looked at, each found by one step in an index; and jobs of each.
MOST_KEYS, MOST_JOBS = 50, 1_000
#: Holders of a key among which one that runs is looked for.
MOST_HOLDERS = 1_000
#: Larger limits of queues are not counted up to.
MOST_COUNTED = 100_000


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
        process = next((each for each in patient.processes if each.pk == claim.process_id), None)
        since = duration(patient.present - portable.aware(claim.created_at))
        who = "a process that is not registered" if process is None else described(process)
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


EXAMINATIONS = (held_for_long, full_queues)
