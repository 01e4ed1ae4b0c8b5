"""The task framework: ``django.tasks`` (Django 6) or its backport ``django_tasks``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

from django.core.exceptions import ImproperlyConfigured

#: The error for a Django without a task framework.
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
    from django.tasks import signals as framework_signals
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
    from django_tasks import signals as framework_signals
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import DEFAULT_TASK_PRIORITY, Task, TaskError
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    # Before 0.12, these names ended with "Error" in the backport.
    InvalidTask = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
    InvalidTaskBackend = (
        getattr(exceptions, "InvalidTaskBackend", None) or exceptions.InvalidTaskBackendError
    )

P = ParamSpec("P")
R = TypeVar("R")

# Generic only for type checkers. The backport's are generic at run time, with other parameters.
if TYPE_CHECKING:
    GenericTask = Task
    GenericTaskResult = TaskResult
    #: Of any function. Without parameters, strict type checkers object to each use.
    AnyTask: TypeAlias = Task[..., Any]
    AnyTaskResult: TypeAlias = TaskResult[..., Any]
else:
    AnyTask, AnyTaskResult = Task, TaskResult

    class GenericTask(Task, Generic[P, R]):
        """A task, generic in the parameters and the return value of its function."""

        __slots__ = ()

    class GenericTaskResult(TaskResult, Generic[P, R]):
        """A task result, generic in the same way."""

        __slots__ = ()


__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_PRIORITY",
    "DEFAULT_TASK_QUEUE_NAME",
    "MISSING_FRAMEWORK",
    "NATIVE",
    "AnyTask",
    "AnyTaskResult",
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
    "framework_signals",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
