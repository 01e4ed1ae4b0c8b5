"""Job: one enqueued call of a task."""

from __future__ import annotations

from django.db import models, router

from ..dialects import tables
from ..errors import UndiscardableError
from .base import alters_data
from .fields import ExactCharField, ExactTextField, InstantField
from .job_queryset import JobQuerySet

JobManager = models.Manager.from_queryset(JobQuerySet)


class Job(models.Model):
    """One call of a task with its arguments, and what became of it.

    Where a job stands is the one execution row it has; a job that has ended well has none. Of all
    that have ended, well or failed, ``finished_at`` says when.
    """

    id = models.BigAutoField(primary_key=True)
    queue_name = ExactCharField(max_length=255)
    task_path = ExactCharField(max_length=255)
    #: Alias in ``TASKS`` of the backend that enqueued the job.
    backend_name = ExactCharField(max_length=255)
    #: Negated priority, so that ascending indexes serve the order of the poll everywhere.
    rank = models.SmallIntegerField(default=0)
    #: The encoded call; see ``steady_queue_core.arguments``.
    arguments = ExactTextField()
    #: Of a job with a limit: what it shares with others, and how; see ``dialects.Limit``.
    concurrency_key = ExactCharField(max_length=255, null=True)
    concurrency_limit = models.IntegerField(null=True)
    concurrency_duration = models.DurationField(null=True)
    concurrency_discards = models.BooleanField(db_default=False)
    max_attempts = models.SmallIntegerField(default=1)
    #: Attempts that have ended; a claim in progress is one more.
    attempts = models.IntegerField(default=0)
    #: The token of the last claim that ended; the next claim's is greater.
    token = models.BigIntegerField(default=0)
    #: JSON list: the worker of each attempt.
    worker_ids = ExactTextField(null=True)
    #: JSON list: ``[exception path, traceback]`` of each failed attempt.
    errors = ExactTextField(null=True)
    #: The encoded return value.
    return_value = ExactTextField(null=True)
    enqueued_at = InstantField()
    scheduled_at = InstantField(null=True)
    #: Start of the first attempt.
    started_at = InstantField(null=True)
    last_attempted_at = InstantField(null=True)
    #: When the job ended, well or failed.
    finished_at = InstantField(null=True)

    objects = JobManager()

    class Meta:
        db_table = tables.JOBS
        indexes = (models.Index(fields=["finished_at"], name="steady_queue_jobs_finished"),)
        default_permissions = ("view",)
        permissions = (
            ("retry_job", "Can retry failed jobs"),
            ("discard_job", "Can discard jobs"),
            ("run_job", "Can run jobs now that wait"),
            ("view_arguments", "Can view arguments and results of jobs"),
        )

    def __str__(self) -> str:
        return f"{self.task_path} #{self.pk}"

    @property
    def priority(self) -> int:
        """The job's priority, -100 to 100; larger runs first."""
        return -self.rank

    @alters_data
    def retry(self) -> bool:
        """Make this job ready again if it has failed; say whether it had."""
        return bool(self._alone().retry_failed())

    @alters_data
    def run_now(self) -> bool:
        """Have this job run now if it is scheduled, as if it were due, or blocked, beyond its
        limit; say whether it was."""
        return bool(self._alone().run_now())

    @alters_data
    def discard(self) -> None:
        """Delete this job, which waits or has failed.

        Raises ``UndiscardableError`` if it runs or has finished.
        """
        if not self._alone().discard():
            raise UndiscardableError(
                f"Job {self.pk} cannot be discarded: it is running, has finished, or is gone."
            )

    def _alone(self) -> JobQuerySet:
        using = router.db_for_write(Job, instance=self)
        return Job.objects.using(using).filter(pk=self.pk)
