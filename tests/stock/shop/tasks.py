from __future__ import annotations

from typing import Any

from django.utils import timezone

from steady_queue_core import task as our_task

from .framework import task
from .models import Customer, Order


@task
def add(a: int, b: int) -> int:
    return a + b


@task
async def aadd(a: int, b: int) -> int:
    return a + b


@our_task
def confirm(order_id: int) -> None:
    Order.objects.filter(pk=order_id).update(confirmed_at=timezone.now())


@our_task
def greet(customer: Customer) -> str:
    return f"Hello, {customer.nickname}!"


@our_task(enqueue_on_commit=True)
def ship(order_id: int) -> int:
    return order_id


@our_task(takes_context=True)
def tell_times(context: Any) -> list[Any]:
    result = context.task_result
    return [timezone.now(), result.enqueued_at, result.started_at]
