"""What is done with a few concurrency keys reads and locks no more beside a crowd of permits."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.conformance.base import ending, limited_job
from steady_queue_core.dialects import Ending, QueueSelector, portable, tables
from steady_queue_core.dialects.apart import LONG_AGO
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    Permit,
    ScheduledExecution,
    Semaphore,
)
from steady_queue_core.models.operations import cancel, discard, run_now
from steady_queue_core.models.operations.semaphore_maintenance import SemaphoreMaintenance

from ..positions import forget_positions
from .building import Builder, Shape, analyze
from .conftest import LARGE, Histories
from .costs import Meter
from .operations import WORKER, Place
from .test_costs import on_every_kind

#: The first of the tests of a database builds it, which takes a busy machine a while.
pytestmark = pytest.mark.timeout(600)

#: Permits of other keys, with as many semaphores, and those of one key alone.
OTHERS, OTHER_KEYS, CROWD = 240_000, 30_000, 60_000
#: New keys, one of the others and the crowded one, with their limits.
LIMITS = {"mine0": 1, "mine1": 1, "mine2": 1, "other7": 10, "crowd": 100_000}
#: Those whose permits are counted.
COUNTED = [key for key in LIMITS if key != "crowd"]
QUEUE = "limited"
#: How often a key's permits, as far as they are few, and the rows of its two jobs are read at most:
#: for the preparation, to be locked, and to be moved from table to table.
FEW, JOBS, TIMES = 2, 2, 15
ROWS = len(LIMITS) * (FEW * (portable.FEW_PERMITS + 1) + JOBS * TIMES)
#: Whoever revokes permits may begin with the jobs that run.
MORE = {"revoke": 2 * (Shape.of(LARGE).claimed + Shape.of(LARGE).astray)}
#: Whoever looks for wrong permits reads each one for its job, its process and its key, and what
#: these have.
LOOKS = 3 * 3 * (OTHERS + CROWD + OTHER_KEYS)


class Crowd(Place):
    """A database with permits of many keys, and jobs of a few."""

    def enqueue(self, **fields: Any) -> list[int]:
        jobs = [limited_job(key, to, queue_name=QUEUE, **fields) for key, to in LIMITS.items()]
        found = self.dialect.enqueue(self.connection, jobs)
        return [new.job_id for new in found if new.job_id is not None]

    def blocked(self) -> list[int]:
        """Return the ids of jobs that find no permit."""
        self.enqueue()
        ids = self.enqueue()
        found = BlockedExecution.objects.using(self.using).filter(pk__in=ids)
        return list(found.values_list("pk", flat=True))

    def enqueue_several(self) -> None:
        jobs = [limited_job(key, to) for key, to in LIMITS.items()]
        assert len(self.dialect.enqueue(self.connection, jobs * 2)) == 2 * len(jobs)

    def enqueue_others(self) -> None:
        """Enqueue jobs with other limits."""
        jobs = [limited_job(key, to + 1) for key, to in LIMITS.items()]
        assert len(self.dialect.enqueue(self.connection, jobs)) == len(jobs)

    def dispatch(self, **fields: Any) -> None:
        ids = self.enqueue(delay=timedelta(hours=1), **fields)
        ScheduledExecution.objects.using(self.using).filter(pk__in=ids).update(
            due_at=portable.storable(LONG_AGO)
        )
        assert self.dialect.dispatch(self.connection, len(ids)).moved == len(ids)

    def outcomes(self, how: Ending, **fields: Any) -> list[Any]:
        """Return the ends of claims for which others wait."""
        self.enqueue()
        self.enqueue()
        selector = QueueSelector.of([QUEUE])
        found = self.dialect.claim(self.connection, WORKER, selector, len(LIMITS))
        assert len(found) == len(LIMITS)
        return [ending(how, claim, **fields) for claim in found]

    def settle_limited(self, how: Ending, **fields: Any) -> None:
        outcomes = self.outcomes(how, **fields)
        assert len(self.dialect.settle(self.connection, outcomes)) == len(outcomes)

    def settle_limited_and_claim(self) -> None:
        outcomes, selector = self.outcomes(Ending.FINISHED), QueueSelector.of([QUEUE])
        held, claimed = self.dialect.settle_and_claim(
            self.connection, outcomes, WORKER, selector, len(LIMITS)
        )
        assert len(held) == len(claimed) == len(LIMITS)

    def admit(self) -> None:
        """Admit jobs whose permits have been lost."""
        self.blocked()
        Permit.objects.using(self.using).filter(key__in=["mine0", "mine1"])._raw_delete(self.using)
        assert self.dialect.admit(self.connection, list(LIMITS)) == 2

    def admit_without_semaphores(self) -> None:
        self.blocked()
        rows = Semaphore.objects.using(self.using).filter(pk__in=COUNTED)
        rows._raw_delete(self.using)
        self.dialect.admit(self.connection, COUNTED)
        # Not of one that nobody waits for.
        assert rows.count() == len(COUNTED) - 1

    def recount(self) -> None:
        self.enqueue()
        portable.recount(self.connection, COUNTED)

    def lock_semaphores(self) -> None:
        jobs = [limited_job(key, LIMITS[key]) for key in COUNTED]
        self.dialect.lock_semaphores(self.connection, jobs)

    def maintain(self, do: Callable[[SemaphoreMaintenance, Sequence[str]], object]) -> None:
        self.blocked()
        Semaphore.objects.using(self.using).filter(pk="mine0").update(value=1)
        do(SemaphoreMaintenance(self.using), COUNTED)

    def change(self, operation: Any) -> None:
        """Do something with jobs that are blocked."""
        ids = self.blocked()
        assert operation(self.jobs, ids) == len(ids) == 3


OPERATIONS: dict[str, Callable[[Crowd], object]] = {
    "enqueue": Crowd.enqueue,
    "enqueue where no permit is left": Crowd.blocked,
    "enqueue several": Crowd.enqueue_several,
    "enqueue with other limits": Crowd.enqueue_others,
    "enqueue for later": lambda crowd: crowd.enqueue(delay=timedelta(hours=1)),
    "dispatch": Crowd.dispatch,
    "dispatch or discard": lambda crowd: (crowd.enqueue(), crowd.dispatch(discards=True)),
    "finish": lambda crowd: crowd.settle_limited(Ending.FINISHED),
    "fail": lambda crowd: crowd.settle_limited(Ending.FAILED),
    "try again": lambda crowd: crowd.settle_limited(Ending.RETRIED, delay=3.0),
    "give back": lambda crowd: crowd.settle_limited(Ending.RELEASED),
    "finish and claim": Crowd.settle_limited_and_claim,
    "admit": Crowd.admit,
    "admit without semaphores": Crowd.admit_without_semaphores,
    "recount": Crowd.recount,
    "lock semaphores": Crowd.lock_semaphores,
    "revoke": lambda crowd: crowd.maintain(SemaphoreMaintenance._revoke),
    "mend": lambda crowd: crowd.maintain(SemaphoreMaintenance._recount),
    "delete idle": lambda crowd: crowd.maintain(SemaphoreMaintenance._delete_idle),
    "cancel": lambda crowd: crowd.change(cancel.end),
    "discard": lambda crowd: crowd.change(discard.discard),
    "run now": lambda crowd: crowd.change(run_now.run_now),
}
#: Those that are not done in such transactions.
UNPLANNED = ("recount", "lock semaphores", "revoke", "mend", "delete idle")


@pytest.fixture
def using(histories: Histories, kind: str) -> Iterator[str]:
    """A database with permits of many keys, of which its server does not know yet."""
    using = histories.alias(kind, LARGE, analyzed=True)
    builder = Builder(connections[using], Shape.of(LARGE))
    with ExitStack() as stack:
        stack.callback(analyze, builder.connection)
        stack.callback(_empty, using)
        other = builder.text("'other'", f"i % {OTHER_KEYS}")
        builder.insert(tables.PERMITS, OTHERS, job_id="i", key=other)
        builder.insert(tables.PERMITS, CROWD, job_id=f"i + {OTHERS}", key="'crowd'")
        of_each = OTHERS // OTHER_KEYS
        values = {"limit": "10", "value": f"{10 - of_each}"}
        builder.insert(tables.SEMAPHORES, OTHER_KEYS, key=other, **values)
        values = {"limit": str(LIMITS["crowd"]), "value": str(LIMITS["crowd"] - CROWD)}
        builder.insert(tables.SEMAPHORES, 1, key="'crowd'", **values)
        yield using


def _empty(using: str) -> None:
    """Leave the permits and semaphores that were there before."""
    for model in (Permit, Semaphore):
        model.objects.using(using).exclude(key__startswith="k")._raw_delete(using)
        if connections[using].vendor == "postgresql":
            with connections[using].cursor() as cursor:
                cursor.execute(f"VACUUM FULL {model._meta.db_table}")


@contextmanager
def isolated(using: str, level: str) -> Iterator[None]:
    """Have transactions of a level, where only what is locked may be read as of now."""
    wrapper: Any = connections[using]
    if wrapper.vendor != "mysql":
        yield
        return
    wrapper.isolation_level = level
    with wrapper.cursor() as cursor:
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level.upper()}")
    try:
        yield
    finally:
        wrapper.close()


def locked(using: str) -> int:
    """Return how many rows the transaction has locked, and gaps between them."""
    if connections[using].vendor != "mysql":
        return 0
    session: Any = connections[using].connection
    cursor = session.cursor()
    cursor.execute("SELECT CONNECTION_ID()")
    [(number,)] = cursor.fetchall()
    cursor.execute("SHOW ENGINE INNODB STATUS")
    [(_, _, status)] = cursor.fetchall()
    cursor.close()
    found = re.search(rf"(\d+) row lock\(s\).*\n.* thread id {number},", status)
    return int(found[1]) if found else 0


def excesses(using: str, *, planned: bool = False) -> Iterator[str]:
    """Yield what reads or locks too many rows. ``planned``: in transactions of the statements that
    PostgreSQL plans once, where there are such."""
    crowd = Crowd(using, Shape.of(LARGE))
    claims = ClaimedExecution.objects.using(using)
    if planned:
        crowd.dialect.prepare(crowd.connection, impatient=True)
    for name, do in OPERATIONS.items():
        forget_positions(crowd.connection)
        with Meter(using).undone(planned=planned and name not in UNPLANNED) as meter:
            # The claims without a job have the ids of the next ones.
            claims.filter(pk__gte=crowd.shape.first("astray"))._raw_delete(using)
            do(crowd)
            rows_locked = locked(using)
        if meter.rows > ROWS + MORE.get(name, 0):
            worst = max(meter.costs)
            yield f"{name}: {meter.rows} rows, {worst.rows} of them by {worst.statement}"
        if rows_locked > ROWS:
            yield f"{name}: {rows_locked} rows locked"


@pytest.fixture(autouse=True)
def _quietly() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@on_every_kind
def test_a_few_keys_read_and_lock_their_own_rows(using: str) -> None:
    """With statistics, and before there are any."""
    too_many = []
    for known in (False, True):
        if known:
            analyze(connections[using])
        for level, planned in (("read committed", False), ("repeatable read", True)):
            with isolated(using, level):
                found = excesses(using, planned=planned)
                too_many += [f"{known=}, {planned=}, {level}, {each}" for each in found]
    assert not too_many, "\n".join(too_many)


@on_every_kind
def test_a_look_for_wrong_permits_reads_each_a_few_times(using: str) -> None:
    analyze(connections[using])
    maintenance = SemaphoreMaintenance(using)
    with Meter(using, counts_all=True).undone() as meter:
        assert len(maintenance._expired()) >= OTHERS + CROWD
        assert not {*LIMITS} & {*maintenance._miscounted(), *maintenance._idle()}
    assert OTHERS < meter.rows <= LOOKS, max(meter.costs)
