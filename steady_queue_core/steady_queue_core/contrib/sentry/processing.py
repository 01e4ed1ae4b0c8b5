"""What is around an attempt: a scope and a transaction of its own."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import sentry_sdk

from ...endings import Snooze
from ...features.attempt_ending import AttemptEnding
from ..harmless import harmless
from . import check_ins, failures, names, spans
from .options import SentryOptions


class Processing:
    """One attempt at a job, of a function in its thread or of a coroutine in its task."""

    def __init__(self, options: SentryOptions, context: Any) -> None:
        self.options, self.context = options, context
        self._began = time.monotonic()
        self._stack = ExitStack()
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise

    def _begin(self) -> None:
        context, headers = self.context, self.context.headers
        result = context.task_result
        scope = self._stack.enter_context(sentry_sdk.isolation_scope())
        scope.clear_breadcrumbs()
        worker = result.worker_ids[-1] if result.worker_ids else None
        failures.describe(scope, result, attempt=context.attempt, worker=worker)
        trace = spans.trace_of(headers) if self.options.propagate_traces else {}
        self._span = self._stack.enter_context(
            spans.processing(str(result.task.module_path), trace, values_of(context))
        )
        self._check_in = check_ins.check_in_of(headers) if self.options.monitors else None
        if self._check_in is not None and context.attempt == 1:
            self._check_in.send("in_progress")

    def __enter__(self) -> Processing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    @harmless
    def _end(self, error: BaseException | None) -> None:
        try:
            ending = self.context.ending_of(error)
            if error is not None:
                self._note(error, ending)
            self._check_in_at_end(ending)
        finally:
            self._stack.close()

    def _note(self, error: BaseException, ending: AttemptEnding) -> None:
        if not ending.is_failure:
            return
        self._span.fail()
        if isinstance(error, Snooze):  # The error that says how often it may is still to come.
            return
        is_last = ending is AttemptEnding.FAILED
        if is_last or self.options.report_retries:
            failures.remember(self.context.task_result)
            failures.report(error, is_last=is_last)

    def _check_in_at_end(self, ending: AttemptEnding) -> None:
        if self._check_in is None or ending in _UNFINISHED:
            return
        status = "ok" if ending in _WELL else "error"
        self._check_in.send(status, time.monotonic() - self._began)


_WELL = (AttemptEnding.FINISHED, AttemptEnding.DISCARDED)
_UNFINISHED = (AttemptEnding.RETRIED, AttemptEnding.SNOOZED, AttemptEnding.RELEASED)


def values_of(context: Any) -> dict[str, Any]:
    """Return the data of the transaction of an attempt."""
    result = context.task_result
    found: dict[str, Any] = {
        names.SYSTEM: names.STEADY_QUEUE,
        names.MESSAGE_ID: str(result.id),
        names.DESTINATION: str(result.task.queue_name),
        names.BODY_SIZE: context.size,
        names.RETRIES: int(context.attempt) - 1,
    }
    if result.enqueued_at is not None and result.last_attempted_at is not None:
        waited = (result.last_attempted_at - result.enqueued_at).total_seconds()
        found[names.LATENCY] = round(max(0.0, waited) * 1000)
    return found
