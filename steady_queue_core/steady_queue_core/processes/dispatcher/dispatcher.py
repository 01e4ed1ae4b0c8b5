"""Dispatcher: makes scheduled jobs ready when they are due."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configuration import Configuration
from ...dialects import Dialect, Dispatched
from ...features.rates.closing_up import ClosingUp
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...models import Job
from ...models.operations.batch_maintenance import BatchMaintenance
from ...models.operations.semaphore_maintenance import SemaphoreMaintenance
from ...project_code import contained
from ...statistics.recent_hours import RecentHours
from ...statistics.sampler import Sampler
from ...statistics.storage import RollUp
from ..base.context import ProcessContext
from ..base.database import Unavailable
from ..base.stats_flush import REFUSED_PAUSE, tell_refusal
from ..base.steady_clock import SteadyClock
from .retention import Cleaner

T = TypeVar("T")

logger = get_logger("steady_queue.dispatcher")

#: First pause while all due jobs are locked by other transactions; doubled up to the polling
#: interval.
FIRST_PAUSE = 0.01
#: Seconds until a duty is tried again that failed, because of a row that was locked, or its
#: contents.
FAILURE_PAUSE = 10.0


class Dispatcher:
    """Dispatches due jobs at every polling interval and whenever the next one is due.

    In between it deletes old rows and maintains the semaphores of concurrency limits.
    """

    kind = "dispatcher"

    def __init__(self, context: ProcessContext, settings: Configuration.Dispatcher) -> None:
        self.context, self.settings = context, settings
        self.cleaner = Cleaner(context.using)
        self.closing_up = ClosingUp(context.using)
        self.clock = SteadyClock(context.options.process_alive_threshold)
        self.statistics = (Sampler().do, RollUp().do, RecentHours().do)
        self._next_maintenance = self._next_repair = self._next_statistics = time.monotonic()
        #: Whether the database does not take statistics, although it answers.
        self._is_refused = False
        self._pause = 0.0
        #: Duties that have failed, and until when they are left alone.
        self._failed: dict[str, float] = {}

    def run(self) -> None:
        """Dispatch until asked to stop."""
        self.context.run_until_stopped({"batch_size": self.settings.batch_size}, self._round)

    def _round(self) -> float:
        duties = [self._clean, self._repair_batches, self._close_up]
        if self.settings.concurrency_maintenance:
            duties.insert(1, self._maintain_semaphores)
        if self.context.options.statistics:
            duties.append(self._keep_statistics)
        return min([self._dispatch(), *map(self._do, duties)])

    def _do(self, duty: Callable[[], float]) -> float:
        """Do a duty, on which the others do not depend; return the seconds until the next time.
        Raises ``Unavailable`` if it is not a row that is to blame."""
        name = duty.__name__
        if (left := self._failed.get(name, 0.0) - time.monotonic()) > 0:
            return left
        try:
            return contained(duty)
        except Unavailable as unavailable:
            if unavailable.lost and not unavailable.refused:
                raise
            if unavailable.refused:
                self.context.database.require_writes()
                self._tell(name, unavailable.__cause__)
        except Exception:
            self._tell(name)
        self._failed[name] = time.monotonic() + FAILURE_PAUSE
        return FAILURE_PAUSE

    def _tell(self, duty: str, error: BaseException | None = None) -> None:
        log_internal_error(
            logger,
            "%s could not do one of its duties (%s); it goes on with the others",
            self.context.name,
            duty.strip("_"),
            error=error,
            extra=about("dispatcher.duty_failed"),
        )

    def _run(self, operation: Callable[[BaseDatabaseWrapper, Dialect], T]) -> T:
        """Do a duty in the database, which may refuse some of it."""
        return self.context.database.run(operation, optional=True)

    def _clean(self) -> float:
        """Delete old rows if it is time; return the seconds until the next time."""
        return self._run(self.cleaner.clean)

    def _keep_statistics(self) -> float:
        """Do what is due to the statistics; return the seconds until the next time."""
        if time.monotonic() >= self._next_statistics:
            try:
                run = self.context.database.run
                wait = min(run(each, optional=True) for each in self.statistics)
            except Unavailable as unavailable:
                if not unavailable.refused:
                    raise
                if not self._is_refused:
                    tell_refusal(unavailable)
                wait, self._is_refused = REFUSED_PAUSE, True
            else:
                self._is_refused = False
            self._next_statistics = time.monotonic() + wait
        return max(0.0, self._next_statistics - time.monotonic())

    def _close_up(self) -> float:
        """Let jobs that wait for slots of their rates move up; return the seconds until the next
        look."""
        moved, wait = self._run(lambda *_: self.closing_up.do())
        if moved:
            logger.info(
                "Gave %d jobs with rate limits earlier slots, of jobs that are gone",
                moved,
                extra=about("dispatcher.closed_up", jobs=moved),
            )
        return wait

    def _repair_batches(self) -> float:
        """Look for batches that are stuck if it is time; return the seconds until the next time."""
        if time.monotonic() >= self._next_repair:
            using = self.context.using
            repaired = self._run(lambda *_: BatchMaintenance(using, Job.objects.using(using)).do())
            if repaired:
                logger.warning(
                    "Repaired %d rows of batches, which nothing in Steady Queue leaves so",
                    repaired,
                    extra=about("dispatcher.batches_repaired", rows=repaired),
                )
            interval = self.settings.concurrency_maintenance_interval.total_seconds()
            self._next_repair = time.monotonic() + interval
        return max(0.0, self._next_repair - time.monotonic())

    def _maintain_semaphores(self) -> float:
        """Maintain the semaphores if it is time; return the seconds until the next time."""
        if time.monotonic() >= self._next_maintenance:
            interval = self.settings.concurrency_maintenance_interval.total_seconds()
            admitted = self._run(
                lambda *_: SemaphoreMaintenance(
                    self.context.using,
                    self.clock.read,
                    self.context.options.process_heartbeat_interval,
                ).do()
            )
            if admitted:
                self.context.events.unblocked(admitted)
                logger.info(
                    "Admitted %d blocked jobs to free permits of their concurrency limits",
                    admitted,
                    extra=about("dispatcher.admitted", jobs=admitted),
                )
            self._next_maintenance = time.monotonic() + interval
        return max(0.0, self._next_maintenance - time.monotonic())

    def _dispatch(self) -> float:
        """Dispatch a batch of due jobs; return the seconds until the next try."""
        batch_size = self.settings.batch_size

        def dispatch(connection: BaseDatabaseWrapper, dialect: Dialect) -> Dispatched:
            dispatched = dialect.dispatch(connection, batch_size)
            if dispatched.moved:
                dialect.ring(connection, [])
            return dispatched

        began = time.monotonic()
        moved, next_due_in = self.context.database.run(dispatch)
        self.context.events.polled(moved, batch_size, time.monotonic() - began)
        if moved:
            self.context.events.dispatched(moved)
            logger.debug(
                "Dispatched %d jobs", moved, extra=about("dispatcher.dispatched", jobs=moved)
            )
        interval = self.settings.polling_interval.total_seconds()
        if not moved and next_due_in is not None and next_due_in <= 0.0:
            self._pause = min(interval, self._pause * 2 or FIRST_PAUSE)
            return self._pause
        self._pause = 0.0
        if moved >= batch_size:
            return 0.0
        return interval if next_due_in is None else min(interval, next_due_in)
