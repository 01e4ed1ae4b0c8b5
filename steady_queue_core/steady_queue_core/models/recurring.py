"""Recurring tasks and the record of their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models, router

from ..dialects import portable, tables
from ..errors import UnknownRecurringTaskError, UnusableRecurringTaskError
from .base import Record, alters_data, queue_database
from .fields import ExactCharField, ExactTextField, InstantField

if TYPE_CHECKING:
    from ..compat import TaskResult


class RecurringTask(Record):
    """A task with a schedule. Static ones mirror the code, dynamic ones live here alone."""

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
    #: Whether its slots are enqueued.
    enabled = models.BooleanField(default=True)
    #: Slots up to this instant are never made up for: it was added, enabled or given another
    #: schedule then. NULL: not known.
    active_since = InstantField(null=True)
    updated_at = InstantField()

    class Meta:
        db_table = tables.RECURRING_TASKS
        default_permissions = ("view", "change")
        permissions = (("run_recurringtask", "Can run recurring tasks now"),)

    def __str__(self) -> str:
        return f"{self.key}: {self.schedule}"

    @alters_data
    def run_now(self) -> TaskResult:
        """Enqueue the task once, beside its schedule; in the caller's transaction if there is one.

        Raises ``UnusableRecurringTaskError`` if the row cannot be run in this process.
        """
        # Models are loaded where there is no task framework as well: a check says so.
        from ..compat import InvalidTaskBackend, task_backends

        try:
            backend: Any = task_backends[self.backend_name]
            enqueue = backend.enqueue_recurring
        except (InvalidTaskBackend, AttributeError):
            raise UnusableRecurringTaskError(
                f"The recurring task {self.key!r} cannot be run: {self.backend_name!r} is no "
                "Steady Queue backend in TASKS."
            ) from None
        result: TaskResult = enqueue(self)
        return result

    @alters_data
    def disable(self, *, using: str | None = None) -> bool:
        """Let no further slot be enqueued; say whether that is new. Jobs that are enqueued stay.

        It waits for a slot that is being enqueued just now, and holds as soon as the caller's
        transaction has committed. ``using`` is that of Django's ``save()``. Raises
        ``UnknownRecurringTaskError`` if the row is gone.
        """
        return self._switch(using, enabled=False)

    @alters_data
    def enable(self, *, using: str | None = None) -> bool:
        """Let slots be enqueued from now on; say whether that is new. None is made up for.
        ``using`` is that of Django's ``save()``.

        Raises ``UnknownRecurringTaskError`` if the row is gone.
        """
        return self._switch(using, enabled=True)

    def _switch(self, using: str | None, *, enabled: bool) -> bool:
        using = using or router.db_for_write(RecurringTask, instance=self)
        connection, dialect = queue_database(using)
        row = RecurringTask.objects.using(using).filter(pk=self.pk)
        with dialect.transaction(connection):
            present = portable.storable(dialect.current_time(connection))
            changes: dict[str, Any] = {"enabled": enabled, "updated_at": present}
            if enabled:
                changes["active_since"] = present
            changed = bool(row.filter(enabled=not enabled).update(**changes))
            if not changed and not row.exists():
                raise UnknownRecurringTaskError(
                    f"There is no recurring task {self.key!r} any more."
                )
        for name, value in changes.items() if changed else ():
            setattr(self, name, value)
        return changed


class RecurringExecution(Record):
    """One slot of a schedule that was enqueued: the reason why it is enqueued only once."""

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
