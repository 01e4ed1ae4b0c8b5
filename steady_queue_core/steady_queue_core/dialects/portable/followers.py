"""Claiming the blocked jobs that follow claimed ones, in plain ORM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..chains import Chain, chained, chains_of
from ..records import ClaimedJob, ProcessIdentity
from .claim import claimed_job
from .listing import paused_queues
from .models import model, moved, rows_of
from .own import lock_rows, present_time, transaction
from .permits import free_permits
from .tokens import next_token


def claim_followers(
    connection: BaseDatabaseWrapper,
    process: ProcessIdentity,
    holders: Sequence[ClaimedJob],
    limit: int,
) -> list[ClaimedJob]:
    """Lock the semaphores, and move the blocked jobs that are next to claimed."""
    chains = chains_of(holders)
    keys = [chain.key for chain in chains]
    waiting = rows_of(connection, "BlockedExecution")
    if not waiting.filter(concurrency_key__in=keys).exists():
        return []
    with transaction(connection):
        free = _lock_free(connection, keys)
        paused = paused_queues(connection)
        return [
            follower
            for chain in chains
            if chain.key in free
            and chain.queue_name not in paused
            and _is_intact(connection, process, chain)
            for follower in _follow(connection, process, chain, limit)
        ]


def _lock_free(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> set[str]:
    """Lock the semaphores that nobody else has locked; return their keys."""
    rows = rows_of(connection, "Semaphore").filter(pk__in=keys)
    return {row.pk for row in lock_rows(connection, rows.order_by("pk"), wait=False)}


def _is_intact(connection: BaseDatabaseWrapper, process: ProcessIdentity, chain: Chain) -> bool:
    """Whether the process still holds all claims and permits of the chain, and the key has no more
    permits than it may."""
    using = connection.alias
    tokens = {claim.job_id: claim.token for claim in chain.holders}
    claims = model("ClaimedExecution").objects.using(using).filter(process_id=process.id)
    held = dict(claims.filter(pk__in=tokens).values_list("pk", "token"))
    permits = model("Permit").objects.using(using).filter(pk__in=tokens, key=chain.key)
    # Locked, so that what is newer than this transaction's snapshot is seen as well.
    permitted = {row.pk for row in lock_rows(connection, permits, wait=True)}
    semaphores = model("Semaphore").objects.using(using).filter(pk=chain.key)
    [semaphore] = lock_rows(connection, semaphores, wait=True)
    is_within_limit = free_permits(connection, semaphore) >= 0
    return held == tokens and permitted.issuperset(tokens) and is_within_limit


def _follow(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, chain: Chain, limit: int
) -> list[ClaimedJob]:
    using = connection.alias
    blocked = model("BlockedExecution").objects.using(using)
    waiting = blocked.filter(concurrency_key=chain.key).order_by("rank", "job_id")
    first = list(lock_rows(connection, waiting[: limit * len(chain.holders)], wait=True))
    wanted = model("Job").objects.using(using).filter(pk__in=[row.pk for row in first])
    jobs = {job.pk: job for job in lock_rows(connection, wanted, wait=True)}

    def is_next(row: Any) -> bool:
        return row.queue_name == chain.queue_name and _can_run(using, jobs.get(row.pk))

    present = present_time(connection)
    taken = [
        moved("ClaimedExecution", row, next_token(row.token), present, process_id=process.id)
        for row in takewhile(is_next, first)
    ]
    blocked.filter(pk__in=[row.pk for row in taken])._raw_delete(using)
    model("ClaimedExecution").objects.using(using).bulk_create(taken)
    claims = [claimed_job(row, jobs[row.pk], present) for row in taken]
    return list(chained(chain.holders, claims))


def _can_run(using: str, job: Any | None) -> bool:
    """Whether a blocked row is no stray one, whose job is gone, has ended or is running."""
    if job is None or job.finished_at is not None:
        return False
    return not model("ClaimedExecution").objects.using(using).filter(pk=job.pk).exists()
