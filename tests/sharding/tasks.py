"""Tasks of customers, whose jobs are spread over shards."""

from __future__ import annotations

from typing import Any

from steady_queue_core import limits_concurrency, task
from steady_queue_core.tasks.task_context import SteadyQueueTaskContext

from ..app.models import Item

OURS = "steady_queue_core.backend.SteadyQueueBackend"
SHARDED = "steady_queue_core.sharding.ShardedBackend"


def key_of_order(task: Any, args: list[Any], kwargs: dict[str, Any]) -> object:
    """Return the shard key of a call, as OPTIONS['key'] may name it."""
    return (kwargs or {"order": args[0]})["order"]


def broken_key(task: Any, args: list[Any], kwargs: dict[str, Any]) -> object:
    raise LookupError("no customer")


async def coroutine_key(task: Any, args: list[Any], kwargs: dict[str, Any]) -> object:
    return 1


@task
def greet(customer_id: object, text: str = "hello") -> str:
    return f"{text}, {customer_id}"


@task
def bill(amount: int, *, customer_id: int = 7) -> int:
    return amount


@task
def ship(order: Any) -> Any:
    return order


@task
def anything(*args: Any, **kwargs: Any) -> None:
    """Have no parameters with names."""


@task(shard_key=lambda order, *rest: order["customer"])
def pack(order: dict[str, Any], *rest: Any) -> None:
    """Say itself where its key is."""


@task(shard_key="one place")
def report() -> None:
    """Have all of its jobs in one shard."""


@task(shard_key=lambda item: item)
def count(item: Item) -> None:
    """Have an instance of a model as its key."""


@task
def note(result_id: str) -> str:
    return f"noted {result_id}"


@task(on_success=note)
def noted(customer_id: int) -> int:
    return customer_id


@task(shard_key="one place")
def audit(result_id: str) -> None:
    """Be a callback that has a key of its own."""


@task(on_success=audit)
def audited(customer_id: int) -> None:
    """Have that callback."""


@task(takes_context=True)
def greet_all(context: SteadyQueueTaskContext, customer_id: int, others: list[int]) -> None:
    for each in others:
        context.enqueue(greet, each)


@limits_concurrency(key=lambda customer_id: customer_id)
@task
def one_at_a_time(customer_id: int) -> None:
    """Run once at a time for each customer."""


@task(unique=True)
def once(customer_id: int) -> None:
    """Have a unique key."""


@task
def add(customer_id: int, number: int) -> int:
    return number + 1
