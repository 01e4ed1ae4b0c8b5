"""Reporting failures of attempts, each once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import sentry_sdk
from sentry_sdk.utils import event_from_exception

from ...errors import ReportedTaskError
from . import names

#: Most attempts that are remembered as reported.
MOST_REMEMBERED = 10_000
#: The errors of a task process that its middleware does not meet: of arguments that cannot be
#: decoded, and of values that cannot be stored.
_OUTSIDE = (
    "steady_queue_core.arguments.errors.",
    "steady_queue_core.payloads.errors.",
    "steady_queue_core.errors.TooManySnoozesError",
    "steady_queue_core.errors.UndeliverableError",
    "steady_queue_core.errors.UnregisteredTaskError",
    "steady_queue_core.errors.TransactionEndedError",
    "steady_queue_core.errors.RollbackRequestedError",
)


def report(error: BaseException, *, is_last: bool) -> None:
    """Report what has ended an attempt, in the current scope: as an error nobody has handled, or
    as a warning if the job runs again."""
    event, hint = event_from_exception(
        error,
        client_options=sentry_sdk.get_client().options,
        mechanism={"type": names.MECHANISM, "handled": not is_last},
    )
    event["level"] = "error" if is_last else "warning"
    sentry_sdk.capture_event(event, hint=hint)


#: The attempts in this process that are reported, until a signal tells of them.
_reported: dict[tuple[str, str, int], None] = {}


def _key(result: Any) -> tuple[str, str, int]:
    return str(result.backend), str(result.id), len(result.worker_ids)


def remember(result: Any) -> None:
    """Remember that the failure of an attempt is reported: a signal will tell of it, perhaps with
    another error, such as one that says which time-out was exceeded."""
    _reported[_key(result)] = None
    while len(_reported) > MOST_REMEMBERED:
        with suppress(KeyError, RuntimeError):  # Other threads do the same.
            del _reported[next(iter(_reported))]


def was_reported(result: Any, error: BaseException) -> bool:
    """Whether the failure that a signal tells of was reported, here or in the task process that
    has met it."""
    if _key(result) in _reported:
        _reported.pop(_key(result), None)
        return True
    if not isinstance(error, ReportedTaskError):
        return False
    return not str(error.exception_class).startswith(_OUTSIDE)


def describe(scope: Any, result: Any, *, attempt: int, worker: str | None = None) -> None:
    """Say in a scope which job its events are about."""
    task = result.task
    scope.set_tag("task", task.module_path)
    scope.set_tag("queue", task.queue_name)
    scope.set_tag("attempt", str(attempt))

    def with_context(event: Any, hint: Any) -> Any:
        event.setdefault("contexts", {})["steady_queue"] = _context(result, attempt, worker)
        return event

    # When there is an event: most attempts have none.
    scope.add_event_processor(with_context)


def _context(result: Any, attempt: int, worker: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "task": result.task.module_path,
        "task_id": str(result.id),
        "queue": result.task.queue_name,
        "backend": result.backend,
        "attempt": attempt,
    }
    if worker is not None:
        found["worker"] = worker
    if _may_tell_arguments():
        found |= _arguments(result)
    return found


def _may_tell_arguments() -> bool:
    """Whether the project lets the SDK tell what jobs contain."""
    client = sentry_sdk.get_client()
    collected = client.options.get("data_collection")
    if isinstance(collected, Mapping) and "queues" in collected:
        return bool(collected["queues"])
    return bool(client.should_send_default_pii())  # It is older than that option.


def _arguments(result: Any) -> dict[str, Any]:
    from ...listings.payloads import Redactor

    redactor = Redactor()
    names = redactor.names(result.task.module_path, len(result.args))
    return {
        "args": redactor.redact_positional(result.args, names),
        "kwargs": redactor.redact(dict(result.kwargs)),
    }
