"""The task backend that ``TASKS`` names: stores calls of tasks as jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.checks import CheckMessage
from django.db import DatabaseError, OperationalError, ProgrammingError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from . import arguments
from .arguments.signature import require_fit
from .backend_checks import missing_app, wrong_options
from .backend_results import (
    complete,
    refusal,
    result_of_call,
    results_of_calls,
    stored_job,
    stored_results,
)
from .backend_settings import APP, BackendSettings
from .call_facts import metadata_of_call, require_room
from .compat import Task, TaskResult, task_enqueued
from .dialects import Dialect, EnqueuedJob, NewJob, Refused, dialect_for
from .encoded_call import EncodedCall
from .errors import SteadyQueueError
from .payloads import Scope, call_scope
from .tasks.checkpoint_store import DatabaseStore
from .tasks.definition import SteadyQueueTask
from .tasks.model_arguments import require_storable_models
from .tasks.notes import Store
from .tasks.placement import beside
from .tasks.results import task_result_of
from .tasks.task_signals import Audience, send_task_signal
from .tasks.validation import (
    ValidTasks,
    require_datetime,
    require_enqueueable,
    require_valid,
    with_any_context,
)
from .timezones import to_utc

if TYPE_CHECKING:
    from .models import RecurringTask
    from .schedules.values import RecurringDefinition


class SteadyQueueBackend(BackendSettings):
    """Stores tasks as jobs in a database of the project.

    ``BackendOptions`` documents its ``OPTIONS``.
    """

    task_class = SteadyQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True
    #: Whether jobs are stored in a database, for the queue's processes to find.
    stores_jobs = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._valid = ValidTasks()

    def checkpoints(self, using: str | None = None) -> Store:
        """Return where the checkpoints of jobs in ``using`` are, by default this database."""
        return DatabaseStore(using or self.database)

    def validate_task(self, task: Task) -> None:
        """Raise ``InvalidTask`` unless this backend can run ``task``."""
        require_datetime(task)
        super().validate_task(with_any_context(task))
        require_valid(task, self._written)

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Store a call of ``task``, in the caller's transaction if there is one.

        Raises ``InvalidTask``, ``TypeError`` if the function does not accept the arguments,
        ``arguments.TaskArgumentError`` if they cannot be stored, ``DuplicateTask`` if another job
        has the unique key of the call and the task says so, and ``QueueFull`` if ``queue_limits``
        say so. Nothing is stored then.
        """
        [result] = self.store([self.encode(task, args, kwargs)])
        return result

    def store(self, calls: Sequence[EncodedCall]) -> list[TaskResult]:
        """Store encoded calls, all or none. Calls with ``enqueue_on_commit`` are stored later, when
        the caller's transaction commits."""
        chain = self.middleware
        return self._admit(calls) if chain is None else chain.enqueue(calls, self._admit)

    def _admit(self, calls: Sequence[EncodedCall]) -> list[TaskResult]:
        # Now, and not at the commit: then nobody is left who could try again.
        require_room(calls, self)
        # What is added to a batch belongs in its transaction.
        later = [call.batch_id is None and self._waits_for_commit(call.task) for call in calls]
        if True not in later:
            return self.insert(calls)
        stored = iter(self.insert([c for c, waits in zip(calls, later, strict=True) if not waits]))
        return [
            self._insert_after_commit(call) if waits else next(stored)
            for call, waits in zip(calls, later, strict=True)
        ]

    def require_room(self, calls: Sequence[EncodedCall], *, keep: bool = True) -> None:
        """Take room in the queues of calls that are about to be stored, and ``keep`` it. Raises
        ``QueueFull``."""
        require_room(calls, self, keep=keep)

    def count_ready(self, queue_name: str, limit: int) -> int:
        """Count the ready jobs of a queue up to a limit."""
        connection, dialect = self._storage()
        try:
            return dialect.count_ready(connection, queue_name, limit)
        except (OperationalError, ProgrammingError):
            self._require_tables(connection)
            raise

    def enqueue_now(
        self,
        task: Task,
        args: Any,
        kwargs: Any,
        *,
        intended_time: datetime | None = None,
        recurring_task: RecurringDefinition | None = None,
    ) -> TaskResult:
        """Enqueue inside the current transaction, ignoring ``enqueue_on_commit``, and however long
        the queue is.

        ``intended_time``: the slot of a schedule that the job is for. ``recurring_task``: what has
        the schedule.
        """
        calls = [self.encode(task, args, kwargs, intended_time=intended_time)]
        calls[0].recurring_task = recurring_task
        chain = self.middleware
        [result] = self.insert(calls) if chain is None else chain.enqueue(calls, self.insert)
        return result

    def enqueue_recurring(self, row: RecurringTask) -> TaskResult:
        """Enqueue a recurring task once, as defined in the code or, if it was added at run time,
        by its row.

        Raises ``UnusableRecurringTaskError``, also for an instance among its arguments that is
        gone, and for what a key's callable or middleware raises.
        """
        from .schedules.stored import definition_in_force, unusable

        definition = definition_in_force(row)
        task = beside(definition.configured_task(), self)
        try:
            return self.enqueue_now(task, *definition.call())
        except (DatabaseError, SteadyQueueError):
            raise
        except Exception as error:
            raise unusable(str(row.key), error) from error

    def insert(self, calls: Sequence[EncodedCall]) -> list[TaskResult]:
        """Insert the jobs of encoded calls, all or none, and send ``task_enqueued``.

        The result of a call is ``discarded`` if its concurrency limit is reached and its task
        discards on conflict, and a ``duplicate`` if another job has its unique key.
        """
        if not calls:
            return []
        connection, dialect = self._storage()
        try:
            stored = dialect.enqueue(connection, [self.new_job(call) for call in calls])
        except (OperationalError, ProgrammingError):
            self._require_tables(connection)
            raise
        except Refused as refused:
            raise refusal(refused, calls, self.alias, self.results_of) from None
        dialect.ring_after_commit(
            connection, list(dict.fromkeys(call.task.queue_name for call in calls))
        )
        results = results_of_calls(calls, stored, self.alias, self.results_of)
        if Audience().hears(task_enqueued):
            for new, result in zip(stored, results, strict=True):
                if new.is_new:
                    send_task_signal(task_enqueued, type(self), result)
        return results

    def new_result(self, call: EncodedCall, new: EnqueuedJob | None = None) -> TaskResult:
        """Return the result of a call that has not run. ``new`` is ``None`` until it is stored."""
        return result_of_call(call, self.alias, new)

    def get_result(self, result_id: str) -> TaskResult:
        """Return the current result of a job. Raises ``TaskResultDoesNotExist``."""
        return task_result_of(stored_job(self.database, result_id))

    def cancel(self, result_id: str) -> bool:
        """Cancel the job of a result; return whether it was waiting or running.

        Raises ``TaskResultDoesNotExist``.
        """
        return bool(stored_job(self.database, result_id).cancel())

    def results_of(self, job_ids: Sequence[int]) -> dict[int | None, TaskResult]:
        """Return the results of those of these jobs that exist."""
        return stored_results(self.database, job_ids)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Report wrong ``OPTIONS``, or a missing app."""
        if self.stores_jobs and not apps.is_installed(APP):
            return [missing_app(self.alias, APP)]
        return wrong_options(self.alias, lambda: self.settings, self.queues)

    def encode(
        self, task: Task, args: Any, kwargs: Any, *, intended_time: datetime | None = None
    ) -> EncodedCall:
        """Validate a call and return it in its stored form."""
        if not (task in self._valid and _validates_like_us(self)):
            self.validate_task(task)
            require_enqueueable(task, self)
            self._valid.add(task)
        require_fit(task, args, kwargs)
        text = arguments.encode_call(args, kwargs, limits=self.payload_limits)
        require_storable_models(task, text, self.settings.argument_models)
        call = EncodedCall(task, args, kwargs, text)
        found = metadata_of_call(call, self, intended_time)
        call.metadata = None if found is None else found.text(self.payload_limits)
        return call

    def _storage(self) -> tuple[BaseDatabaseWrapper, Dialect]:
        """Return the connection to the database that holds the jobs, and its dialect."""
        using = self.database
        return connections[using], dialect_for(using)

    def _waits_for_commit(self, task: Task) -> bool:
        own: bool | None = getattr(task, "enqueue_on_commit", None)
        return self.settings.enqueue_on_commit if own is None else own

    def _insert_after_commit(self, call: EncodedCall) -> TaskResult:
        """Insert the job when the caller's transaction commits; the result gets its id then."""
        pending = self.new_result(call)

        def insert() -> None:
            [stored] = self.insert([call])
            complete(pending, stored)

        transaction.on_commit(insert, using=self.caller_database)
        return pending

    def _require_tables(self, connection: BaseDatabaseWrapper) -> None:
        """Raise ``MigrationsMissing`` if a statement failed for the lack of tables."""
        from .models.readiness import require_tables

        with suppress(DatabaseError):
            require_tables(connection)

    def new_job(self, call: EncodedCall) -> NewJob:
        """Return the job of an encoded call, to be inserted."""
        task = call.task
        run_after = task.run_after
        most_attempts = call.max_attempts or getattr(task, "max_attempts", None)
        new = NewJob(
            queue_name=task.queue_name,
            rank=-int(task.priority),
            task_path=task.module_path,
            backend_name=self.alias,
            arguments=call.arguments,
            max_attempts=most_attempts or self.settings.max_attempts,
            run_at=to_utc(run_after) if run_after is not None else None,
            delay=getattr(task, "delay", None),
            limit=call.limit,
            metadata=call.metadata,
            batch_id=call.batch_id,
            waits=call.waits,
            fair_key=call.fair_key,
        )
        if (codec := self.payload_codec) is None:
            return new
        return replace(new, arguments=codec.seal(new.arguments, _scope_of(new)))

    def opened(self, new: NewJob) -> str:
        """Return the encoded arguments of a job. Raises ``PayloadError``."""
        codec = self.payload_codec
        return new.arguments if codec is None else codec.open(new.arguments, _scope_of(new))


def _scope_of(new: NewJob) -> Scope:
    return call_scope(new, new.limit.key if new.limit is not None else None)


_VALIDATE = SteadyQueueBackend.validate_task


def _validates_like_us(backend: SteadyQueueBackend) -> bool:
    """Whether validation has the same result each time; a subclass's own may not."""
    return getattr(backend.validate_task, "__func__", None) is _VALIDATE
