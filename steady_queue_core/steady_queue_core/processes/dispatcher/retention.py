"""Deletes finished and failed jobs and records of runs once their retention period is over."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configured_backends import backends_on, recurring_tasks_on
from ...dialects import Dialect, fair_queues_in
from ...durations import LONGEST
from ...internal_errors import log_internal_error
from ...listings.damage import ERRORS, is_damage
from ...logging import about, get_logger
from ...models import Job, RecurringTask
from ...models.operations.batch_maintenance import FinishedBatches
from ...models.operations.clear import (
    FailedJobs,
    FinishedJobs,
    PastEnds,
    PastRuns,
    RetainedJobs,
    StrayCheckpoints,
    StraySteps,
)
from ...models.operations.idle_keys import IdleRates, IdleTurns, KeptKeys, LostKeys
from ...models.operations.sweep import Sweep
from ...schedules.policies import from_text

logger = get_logger("steady_queue.dispatcher")

#: Most rows that one statement reads and deletes.
BATCH = 500
#: Seconds between the starts of two passes.
INTERVAL = 60.0
#: Seconds after which a pass starts at the oldest rows again instead of where the last one ended:
#: rows that were skipped may have expired since, and others may have been committed late.
FRESH_START = 3600.0
#: Time for which the record of a run is kept after the end of its catch-up period, since schedulers
#: may know different versions of a schedule.
RUNS_BEYOND = timedelta(days=1)


class Cleaner:
    """Makes a pass over the expired rows once a minute, one batch per call."""

    def __init__(self, using: str) -> None:
        self.using = using
        self._next_pass = self._next_start = 0.0
        self._left: list[tuple[str, Sweep]] = []
        self._positions: dict[str, Any] = {}

    def clean(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> float:
        """Delete one batch if it is time; return the seconds until the next one."""
        if not self._left:
            wait = self._next_pass - time.monotonic()
            if wait > 0:
                return wait
            self._begin(dialect.current_time(connection))
        if self._left:
            self._clear(*self._left[0])
        return 0.0 if self._left else INTERVAL

    def _begin(self, present: datetime) -> None:
        now = time.monotonic()
        if now >= self._next_start:
            self._positions.clear()
            self._next_start = now + FRESH_START
        left = list(expired(self.using, present))
        for name, sweep in left:
            sweep.position = self._positions.get(name)
        self._next_pass = now + INTERVAL
        self._left = left

    def _clear(self, name: str, sweep: Sweep) -> None:
        try:
            cleared = sweep.clear(BATCH)
        except ERRORS as error:
            if not is_damage(error):
                if sweep.database.is_contention(error):
                    self._leave(name, sweep)
                raise
            log_internal_error(
                logger,
                "Could not clear %s: a row is damaged",
                name,
                extra=about("dispatcher.not_cleared"),
            )
            self._leave(name, sweep)
            return
        if sweep.refused:
            log_internal_error(
                logger,
                "Could not clear %d rows of %s: the database refused it",
                len(sweep.refused),
                name,
                error=next(iter(sweep.refused.values())),
                extra=about("dispatcher.not_cleared"),
            )
        if cleared:
            logger.debug(
                "Cleared %d rows", cleared, extra=about("dispatcher.cleared", rows=cleared)
            )
        if sweep.exhausted:
            self._leave(name, sweep)

    def _leave(self, name: str, sweep: Sweep) -> None:
        """Leave what follows to the next pass."""
        self._positions[name] = sweep.position
        self._left.pop(0)


def expired(using: str, present: datetime) -> Iterator[tuple[str, Sweep]]:
    """Yield, with a name, the rows in ``using`` whose time is over: by the options of the backends
    that store their jobs there, or by those of tasks and calls."""
    settings = {alias: backend.settings for alias, backend in backends_on(using).items()}
    finished = {alias: each.clear_finished_jobs_after for alias, each in settings.items()}
    failed = {alias: each.clear_failed_jobs_after for alias, each in settings.items()}
    yield from _of_backends(FinishedJobs, finished, using, present)
    yield from _of_backends(FailedJobs, failed, using, present)
    yield "RetainedJobs", RetainedJobs(Job.objects.using(using), present)
    yield "KeptKeys", KeptKeys(using, present)
    yield "LostKeys", LostKeys(using)
    if fair_queues_in(using) is not None:
        yield "IdleTurns", IdleTurns(using)
    yield "IdleRates", IdleRates(using, present)
    yield "StrayCheckpoints", StrayCheckpoints(using, Job.objects.using(using))
    yield "StraySteps", StraySteps(using, Job.objects.using(using))
    longest = _longest(finished)
    if longest is not None:
        yield "FinishedBatches", FinishedBatches(using, present - longest)
        kept = max(longest, _longest_catch_up(using) + RUNS_BEYOND)
        in_code = [each.key for each in recurring_tasks_on(using)]
        yield "slots", PastRuns(using, present - kept, in_code)
    yield "PastEnds", PastEnds(using, present)


def _of_backends(
    kind: type[FinishedJobs | FailedJobs],
    kept: Mapping[str, timedelta | None],
    using: str,
    present: datetime,
) -> Iterator[tuple[str, Sweep]]:
    jobs = Job.objects.using(using)
    for alias, period in kept.items():
        if period is not None:
            yield (
                f"{kind.__name__} of {alias}",
                kind(jobs.filter(backend_name=alias), present - period),
            )
    longest = _longest(kept)
    if longest is not None:
        # Jobs of backends that are no longer in TASKS are kept for the longest period.
        others = jobs.exclude(backend_name__in=list(kept))
        yield f"{kind.__name__} of others", kind(others, present - longest)


def _longest(kept: Mapping[str, timedelta | None]) -> timedelta | None:
    """Return the longest period, or ``None`` if there is none or one is unlimited."""
    periods = [period for period in kept.values() if period is not None]
    return max(periods) if periods and len(periods) == len(kept) else None


def _longest_catch_up(using: str) -> timedelta:
    """Return the longest catch-up period of the recurring tasks in code and in the database."""
    policies: list[object] = [each.catch_up for each in recurring_tasks_on(using)]
    rows = RecurringTask.objects.using(using).order_by()
    for text in rows.values_list("catch_up", flat=True).distinct():
        with suppress(ValueError):
            policies.append(from_text(text))
    periods = [each for each in policies if isinstance(each, timedelta)]
    return min(LONGEST, max(periods, default=timedelta(0)))
