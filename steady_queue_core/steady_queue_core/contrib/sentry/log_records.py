"""Keeping the SDK from reporting failures of tasks once more, from the log."""

from __future__ import annotations

from typing import Any

from sentry_sdk.scope import global_event_processors

from ...compat import framework_signals

_state = {"added": False, "leaves_out": False}


def leave_out() -> None:
    """Report no more records of the task framework about tasks that have failed."""
    _state["leaves_out"] = True
    if not _state["added"]:  # It cannot be taken away again.
        _state["added"] = True
        # Before that of the SDK which drops what it has seen: it would take our own report, which
        # comes later, for another one of the same error.
        global_event_processors.insert(0, _without_failures)


def let_in() -> None:
    """Report these records again."""
    _state["leaves_out"] = False


def _without_failures(event: Any, hint: Any) -> Any:
    record: Any = (hint or {}).get("log_record")
    if record is None or not _state["leaves_out"]:
        return event
    is_failure = record.name == framework_signals.logger.name and record.exc_info
    return None if is_failure else event
