"""The one place that knows ``django.tasks`` (Django 6) from its backport ``django_tasks``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from django.core.exceptions import ImproperlyConfigured

#: What to tell a user whose Django has no task framework.
MISSING_FRAMEWORK = (
    "This Django has no django.tasks, and its backport is not installed. "
    "Install it with: pip install 'steady-queue-core[backport]'"
)

NATIVE = find_spec("django.tasks") is not None

if not NATIVE and find_spec("django_tasks") is None:
    raise ImproperlyConfigured(MISSING_FRAMEWORK)

if TYPE_CHECKING or NATIVE:
    from django.tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        task_backends,
    )
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import DEFAULT_TASK_PRIORITY, Task, TaskError
    from django.tasks.exceptions import (
        InvalidTask,
        InvalidTaskBackend,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
else:
    from django_tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        exceptions,
        task_backends,
    )
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import DEFAULT_TASK_PRIORITY, Task, TaskError
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    # The backport's names had a suffix until 0.12.
    InvalidTask = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
    InvalidTaskBackend = (
        getattr(exceptions, "InvalidTaskBackend", None) or exceptions.InvalidTaskBackendError
    )

P = ParamSpec("P")
R = TypeVar("R")

# Generic for type checkers alone, in the backport also at run time, by other parameters.
if TYPE_CHECKING:
    GenericTask = Task
    GenericTaskResult = TaskResult
else:

    class GenericTask(Task, Generic[P, R]):
        """A task that knows the parameters and the return value of its function."""

        __slots__ = ()

    class GenericTaskResult(TaskResult, Generic[P, R]):
        """The same of a result."""

        __slots__ = ()


__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_PRIORITY",
    "DEFAULT_TASK_QUEUE_NAME",
    "MISSING_FRAMEWORK",
    "NATIVE",
    "BaseTaskBackend",
    "GenericTask",
    "GenericTaskResult",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
