"""Finds jobs that have lost their state, and has them rescued."""

from __future__ import annotations

import time

from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...models import Job
from ...models.operations.stateless_jobs import Look, StatelessJobs
from ..base.database import QueueDatabase
from .recovery import Rescuer

logger = get_logger("steady_queue.supervisor")

#: Seconds between two passes over all jobs.
REST = 600.0
#: Seconds between two looks of a pass: a long history is read slowly, beside everything else.
PAUSE = 5.0
#: Seconds after which a job is looked at again that seemed to have no state; the first pass begins
#: as long after the supervisor.
DOUBT = 60.0
#: Jobs that one step ends: the supervisor has other things to do.
MOST = 100


class StatelessSweep:
    """Walks over all jobs, some in each step. Jobs without a state that are still without one a
    while later lose an attempt, as if their process had gone.

    Raises ``Unavailable`` during an outage, and goes on where it was. Several may run at the same
    time.
    """

    def __init__(self, database: QueueDatabase, rescuer: Rescuer) -> None:
        self.database, self.rescuer = database, rescuer
        self._next_step = time.monotonic() + DOUBT
        #: The id of the last job that was looked at.
        self._position = 0
        self._doubtful: list[int] = []

    def step(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if now < self._next_step:
            return
        self._next_step = now + PAUSE
        if self._doubtful:
            self._confirm()
        else:
            self._look()
        if self._position == 0 and not self._doubtful:
            self._next_step = now + REST

    def _look(self) -> None:
        def look(connection: BaseDatabaseWrapper, dialect: Dialect) -> Look:
            return self._jobs.look(self._position)

        found = self.database.run(look)
        self._position = found.last or 0
        self._doubtful = found.job_ids
        if found.job_ids:
            self._next_step += DOUBT - PAUSE

    def _confirm(self) -> None:
        taken: list[int] = []
        try:
            for _ in range(min(MOST, len(self._doubtful))):
                job_id = self._doubtful.pop(0)  # First: a row that breaks this is not met again.
                if self._take(job_id):
                    taken.append(job_id)
        finally:
            if taken:
                logger.warning(
                    "%d jobs, the first of them %d, had not ended and were in no state, which "
                    "nothing in Steady Queue leaves so: they count as interrupted",
                    len(taken),
                    taken[0],
                    extra=about("supervisor.jobs_without_state", jobs=len(taken)),
                )
        if taken:
            self.rescuer.rescue_stateless()

    def _take(self, job_id: int) -> bool:
        try:
            return self.database.run(lambda *_: self._jobs.take(job_id))
        except (DataError, IntegrityError, ValueError, TypeError):
            log_internal_error(
                logger,
                "Job %s has no state, and cannot be given one",
                job_id,
                extra=about("task.not_ended", task_id=str(job_id)),
            )
            return False

    @property
    def _jobs(self) -> StatelessJobs:
        using = self.database.using
        return StatelessJobs(using, Job.objects.using(using))
