"""Job: one enqueued call of a task."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from django.db import models, router

from ..dialects import tables
from ..errors import DuplicateTask, UncopiableError, UndiscardableError
from ..progress import Progress
from .base import alters_data
from .fields import ExactCharField, ExactTextField, InstantField
from .job_queryset import JobQuerySet
from .operations import cancel
from .operations.enqueue_copy import enqueue_copies
from .operations.retry import holder_of_key, key_holder

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

#: The largest primary key.
MAX_ID = 2**63 - 1
#: What belongs to a result beside the row of the job.
RESULT = ("claimedexecution", "failedexecution", "checkpoint")
#: How often a retry is tried whose unique key others take and free.
MOST_TRIES = 3

JobManager = models.Manager.from_queryset(JobQuerySet)


class Job(models.Model):
    """One call of a task: its arguments and its outcome.

    The state of a job is the one execution row that it has; a finished job has none. A job that
    has finished or failed has ``finished_at``.
    """

    id = models.BigAutoField(primary_key=True)
    queue_name = ExactCharField(max_length=255)
    task_path = ExactCharField(max_length=255)
    #: Alias in ``TASKS`` of the backend that enqueued the job.
    backend_name = ExactCharField(max_length=255)
    #: Negated priority, so that ascending indexes serve the poll's order on every database.
    rank = models.SmallIntegerField(default=0)
    #: The encoded call; see ``steady_queue_core.arguments``.
    arguments = ExactTextField()
    #: The job's concurrency limit, if it has one; see ``dialects.Limit``.
    concurrency_key = ExactCharField(max_length=255, null=True)
    concurrency_limit = models.IntegerField(null=True)
    concurrency_duration = models.DurationField(null=True)
    concurrency_discards = models.BooleanField(db_default=False)
    #: Negated once the job is asked to end: no other attempt starts.
    max_attempts = models.SmallIntegerField(default=1)
    #: Attempts that have ended; a claim in progress is one more.
    attempts = models.IntegerField(default=0)
    #: The token of the last claim that ended; the next claim's is greater.
    token = models.BigIntegerField(default=0)
    #: JSON list: the worker of each attempt.
    worker_ids = ExactTextField(null=True)
    #: JSON list: ``[exception path, traceback, attempt]`` of each failed attempt; see
    #: ``tasks.stored_errors``.
    errors = ExactTextField(null=True)
    #: What is stored of the call beyond the columns, as JSON; see ``tasks.metadata``.
    metadata = ExactTextField(null=True)
    #: The encoded return value.
    return_value = ExactTextField(null=True)
    enqueued_at = InstantField()
    scheduled_at = InstantField(null=True)
    #: Start of the first attempt.
    started_at = InstantField(null=True)
    last_attempted_at = InstantField(null=True)
    #: When the job finished or failed.
    finished_at = InstantField(null=True)

    # Type checkers without a plugin do not know what the manager has of its queryset.
    if TYPE_CHECKING:
        objects: ClassVar[JobQuerySet[Job]]
    else:
        objects = JobManager()

    class Meta:
        db_table = tables.JOBS
        indexes = (models.Index(fields=["finished_at"], name="steady_queue_jobs_finished"),)
        default_permissions = ("view",)
        permissions = (
            ("retry_job", "Can retry failed jobs"),
            ("discard_job", "Can discard jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("run_job", "Can run jobs now that wait"),
            ("change_job", "Can move and reschedule jobs that wait"),
            ("enqueue_job", "Can enqueue jobs again"),
            ("view_arguments", "Can view arguments and results of jobs"),
        )

    def __str__(self) -> str:
        return f"{self.task_path} #{self.pk}"

    @property
    def priority(self) -> int:
        """The priority, from -100 to 100; higher runs first."""
        return -self.rank

    @property
    def progress(self) -> Progress | None:
        """How far its task has come, if that has told; queries the database, unless the checkpoint
        was selected along."""
        row: Checkpoint | None = getattr(self, "checkpoint", None)
        return None if row is None else row.progress

    @alters_data
    def retry(self) -> bool:
        """Make this job ready again if it has failed; return whether it had.

        Raises ``DuplicateTask`` if another job has its unique key now.
        """
        alone = self._alone()
        # Its key may become free between the refusal and the question who has it.
        for _ in range(MOST_TRIES):
            if alone.retry_failed():
                return True
            taken = key_holder(alone)
            if taken is not None:
                key, holder = taken
                raise DuplicateTask(
                    f"Job {self.pk} cannot be retried: job {holder} has its unique key, {key!r}. "
                    "Let that one end first, or discard one of the two.",
                    job_id=holder,
                )
        return False

    @alters_data
    def run_now(self) -> bool:
        """Dispatch this job if it is scheduled, or unblock it beyond its limit if it is blocked;
        return whether it was either."""
        return bool(self._alone().run_now())

    @alters_data
    def move_to(self, queue_name: str | None = None, *, priority: int | None = None) -> bool:
        """Give this job another queue, another priority, or both, if it waits; return whether it
        does. Raises ``ValueError`` for names and priorities that no job can have."""
        return bool(self._alone().move_to(queue_name, priority=priority))

    @alters_data
    def reschedule(self, run_after: datetime | timedelta) -> bool:
        """Let this job be due at a time, or so long from now, if it waits; return whether it does.
        Raises ``ValueError`` for a naive time, unless the project has no time zones."""
        return bool(self._alone().reschedule(run_after))

    @alters_data
    def enqueue_copy(self) -> Job | None:
        """Enqueue the call of this job again, whatever has become of it, and return the new job;
        ``None``: its concurrency limit has discarded it at once. It becomes a member of no batch.

        Raises ``DuplicateTask`` if a job has its unique key, and ``UncopiableError`` if it cannot
        be copied.
        """
        alone = self._alone()
        new = enqueue_copies(alone, [self.pk]).get(self.pk)
        if new is not None:
            return None if new.job_id is None else alone.model.objects.using(alone.db).get(
                pk=new.job_id
            )  # fmt: skip
        taken = holder_of_key(alone)
        if taken is not None:
            key, holder = taken
            raise DuplicateTask(
                f"Job {self.pk} cannot be copied: job {holder} has its unique key, {key!r}. Let "
                "that one end first, or discard it.",
                job_id=holder,
            )
        raise UncopiableError(
            f"Job {self.pk} cannot be copied: it is gone, its metadata are damaged, it needs the "
            "results of other members of its batch, or it goes on with an action of the admin."
        )

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was asked to end while it ran."""
        return self.max_attempts < 0

    @alters_data
    def cancel(self) -> bool:
        """Cancel this job; return whether it was waiting or running.

        A waiting job fails with ``TaskCancelled`` at once. A running one is asked to end: its
        worker interrupts it, and it may still finish first.
        """
        alone = self._alone()
        if alone.cancel():
            return True
        # It may have moved from state to state meanwhile: no attempt starts once this is stored.
        return (
            bool(cancel.ask(alone, [self.pk]))
            or alone.filter(finished_at=None, max_attempts__lt=0).exists()
        )

    @alters_data
    def discard(self) -> None:
        """Delete this waiting or failed job.

        Raises ``UndiscardableError`` if it runs or has finished.
        """
        if not self._alone().discard():
            raise UndiscardableError(
                f"Job {self.pk} cannot be discarded: it is running, has finished, or is gone."
            )

    def _alone(self) -> JobQuerySet[Job]:
        using = router.db_for_write(Job, instance=self)
        return Job.objects.using(using).filter(pk=self.pk)


def parse_job_id(text: object) -> int | None:
    """Return the job id that ``text`` spells, or ``None`` if no job can have it."""
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    return int(text) if int(text) <= MAX_ID else None


def find_job(using: str, result_id: str) -> Job | None:
    """Return the job of a task result, with its claim, failure and progress, if it exists."""
    job_id = parse_job_id(result_id)
    if job_id is None:
        return None
    jobs = Job.objects.using(using).select_related(*RESULT).defer("checkpoint__data")
    return jobs.filter(pk=job_id).first()
