"""Receivers of signals: failures that no middleware has met, and the end of processes."""

from __future__ import annotations

import sys
from typing import Any

import sentry_sdk

from ...compat import TaskResultStatus, task_finished
from ...errors import TaskCancelled
from ...signals import process_stopped, task_process_stopped, task_retried
from ..harmless import harmless
from . import failures
from .options import SentryOptions

#: Most seconds for what has gathered to be sent.
FLUSH_TIME = 1.5


class Receivers:
    """Listens to the queue."""

    def __init__(self, options: SentryOptions) -> None:
        self.options = options

    def connect(self) -> None:
        """Listen from now on."""
        task_finished.connect(self.note_finished)
        task_retried.connect(self.note_retried)
        process_stopped.connect(self.note_stopped)
        task_process_stopped.connect(self.note_stopped)

    def disconnect(self) -> None:
        """Listen no more."""
        task_finished.disconnect(self.note_finished)
        task_retried.disconnect(self.note_retried)
        process_stopped.disconnect(self.note_stopped)
        task_process_stopped.disconnect(self.note_stopped)

    def note_finished(self, task_result: Any, **_: Any) -> None:
        """Receive the end of a job, inside the handler of the error that has ended it."""
        error = sys.exc_info()[1]
        if error is not None and task_result.status == TaskResultStatus.FAILED:
            self._report(error, task_result, is_last=True)

    def note_retried(self, task_result: Any, error: Any, **_: Any) -> None:
        """Receive a failure after which the job runs again."""
        if error is not None and self.options.report_retries:
            self._report(error, task_result, is_last=False)

    def note_stopped(self, process_kind: str, **_: Any) -> None:
        """Receive the end of a process, which runs nothing at its exit."""
        if process_kind != "supervisor":
            self._flush()

    @harmless
    def _report(self, error: BaseException, result: Any, *, is_last: bool) -> None:
        # Of arguments that cannot be decoded, of a process that is gone, and others outside of
        # what middleware is around.
        if not sentry_sdk.is_initialized() or failures.was_reported(result, error):
            return
        if isinstance(error, TaskCancelled):
            return
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            failures.describe(scope, result, attempt=max(1, len(result.worker_ids)))
            failures.report(error, is_last=is_last)

    @harmless
    def _flush(self) -> None:
        if sentry_sdk.is_initialized():
            sentry_sdk.flush(timeout=FLUSH_TIME)
