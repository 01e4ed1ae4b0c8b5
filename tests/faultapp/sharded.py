"""Tasks of customers, whose jobs are spread over two databases."""

from __future__ import annotations

import time
from typing import Any

from steady_queue_core import call, enqueue_many, task
from steady_queue_core.retries import constant

from .effects import record


@task(takes_context=True, backend="customers")
def noted(context: Any, result_id: str) -> list[str]:
    """Follow a success."""
    return [context.task_result.backend, result_id]


@task(
    takes_context=True, backend="customers", max_attempts=50, backoff=constant(0), on_success=noted
)
def serve(context: Any, customer_id: int, seconds: float) -> list[Any]:
    record("start", context)
    time.sleep(seconds)
    record("end", context)
    return [customer_id, context.task_result.backend, context.task_result.id]


def serve_all(customers: int, seconds: float) -> list[list[Any]]:
    """Enqueue a call for each customer, and wait for all; return the ids of the results, and their
    values."""
    results = enqueue_many(call(serve, number, seconds) for number in range(customers))
    return [[result.id, *result.wait(60).return_value] for result in results]
