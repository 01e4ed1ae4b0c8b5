"""Recurring tasks and the record of their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models, router

from ..dialects import tables
from ..dialects.database import Database
from ..errors import UnknownRecurringTaskError, UnusableRecurringTaskError
from .base import Record, alters_data
from .fields import ExactCharField, ExactTextField, InstantField

if TYPE_CHECKING:
    from ..compat import AnyTaskResult


class RecurringTask(Record):
    """A task with a schedule. Static tasks mirror the code, dynamic ones exist only here."""

    key = ExactCharField(max_length=255, primary_key=True)
    task_path = ExactCharField(max_length=255)
    schedule = models.CharField(max_length=255)
    timezone = models.CharField(max_length=64)
    arguments = ExactTextField()
    backend_name = ExactCharField(max_length=255)
    queue_name = ExactCharField(max_length=255)
    priority = models.SmallIntegerField(default=0)
    description = ExactTextField(default="")
    #: ``skip``, ``last``, or a duration such as ``36 hours``.
    catch_up = models.CharField(max_length=64, default="skip")
    static = models.BooleanField(default=True)
    #: The first and the last instant that may be a slot; NULL: any.
    starts_at = InstantField(null=True)
    ends_at = InstantField(null=True)
    #: How many runs are enqueued; NULL: any number.
    repeats = models.IntegerField(null=True)
    #: What becomes of a run that is due while the previous one has not ended; see
    #: ``schedules.policies``.
    overlap = models.CharField(max_length=16, default="allow", db_default="allow")
    #: How many runs were enqueued, if ``repeats`` limits them.
    runs = models.IntegerField(default=0, db_default=0)
    #: The job of the last run, and the slot that waits for its end, unless runs may overlap.
    last_job_id = models.BigIntegerField(null=True)
    waiting_at = InstantField(null=True)
    #: Whether its runs are enqueued.
    enabled = models.BooleanField(default=True)
    #: When it was added, enabled or rescheduled. Runs missed up to then are never made up for.
    #: NULL if not known.
    active_since = InstantField(null=True)
    updated_at = InstantField()

    class Meta:
        db_table = tables.RECURRING_TASKS
        default_permissions = ("view", "add", "change", "delete")
        permissions = (("run_recurringtask", "Can run recurring tasks now"),)

    def __str__(self) -> str:
        return f"{self.key}: {self.schedule}"

    @property
    def runs_left(self) -> int | None:
        """How many runs are still to be enqueued; ``None``: any number."""
        return None if self.repeats is None else max(0, self.repeats - self.runs)

    @alters_data
    def run_now(self) -> AnyTaskResult:
        """Enqueue the task once, apart from its schedule, in the caller's transaction if any.

        Raises ``UnusableRecurringTaskError`` if the row cannot be run in this process.
        """
        # Models are loaded even without a task framework, which a system check reports.
        from ..compat import InvalidTaskBackend, task_backends

        try:
            backend: Any = task_backends[self.backend_name]
            enqueue = backend.enqueue_recurring
        except (InvalidTaskBackend, AttributeError):
            raise UnusableRecurringTaskError(
                f"The recurring task {self.key!r} cannot be run: {self.backend_name!r} is no "
                "Steady Queue backend in TASKS."
            ) from None
        result: AnyTaskResult = enqueue(self)
        return result

    @alters_data
    def disable(self, *, using: str | None = None) -> bool:
        """Stop enqueueing runs; return whether the task was enabled. Enqueued jobs stay.

        Waits for a run that is being enqueued, and takes effect when the caller's transaction
        commits. ``using`` is as in Django's ``save()``.

        Raises ``UnknownRecurringTaskError`` if the row is gone.
        """
        return self._switch(using, enabled=False)

    @alters_data
    def enable(self, *, using: str | None = None) -> bool:
        """Enqueue runs from now on; return whether the task was disabled. Runs missed meanwhile
        are not made up for. ``using`` is as in Django's ``save()``.

        Raises ``UnknownRecurringTaskError`` if the row is gone.
        """
        return self._switch(using, enabled=True)

    def _switch(self, using: str | None, *, enabled: bool) -> bool:
        using = using or router.db_for_write(RecurringTask, instance=self)
        database = Database.of(using)
        row = RecurringTask.objects.using(using).filter(pk=self.pk)
        with database.transaction():
            present = database.storable_time()
            changes: dict[str, Any] = {"enabled": enabled, "updated_at": present}
            if enabled:
                changes["active_since"] = present
            changed = bool(row.filter(enabled=not enabled).update(**changes))
            if not changed and not row.exists():
                raise UnknownRecurringTaskError(
                    f"The recurring task {self.key!r} no longer exists."
                )
        for name, value in changes.items() if changed else ():
            setattr(self, name, value)
        return changed


class RecurringExecution(Record):
    """One run of a schedule that was enqueued. Its row keeps the run from being enqueued twice."""

    task_key = ExactCharField(max_length=255)
    run_at = InstantField()
    job_id = models.BigIntegerField(null=True)

    class Meta:
        db_table = tables.RECURRING_EXECUTIONS
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=["task_key", "run_at"], name="steady_queue_recurring_slot"
            ),
        )

    def __str__(self) -> str:
        return f"{self.task_key} at {self.run_at:%Y-%m-%d %H:%M:%S}"
