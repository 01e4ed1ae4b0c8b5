"""Graphs of jobs, which are killed, fail, and grow."""

from __future__ import annotations

import random
import time
from typing import Any

from steady_queue_core import Fail, Previous, Workflow, call, chain, group, task
from steady_queue_core.retries import constant

from .effects import record
from .models import Note


@task(takes_context=True, delivery="transactional", max_attempts=50, backoff=constant(0))
def told(context: Any, name: str) -> None:
    """Leave a row, once, whatever is killed."""
    Note.objects.create(text=f"{context.batch.id} {name}")


@task(takes_context=True, max_attempts=4, backoff=constant(0))
def step(context: Any, value: Any, seconds: float = 0.0, how: str = "") -> Any:
    record("start", context)
    if how == "grow":
        context.workflow.add(call(step, value, seconds), name=f"grown {value}", after=[f"{value}"])
    time.sleep(seconds)
    record("end", context)
    if how == "again" and context.attempt < 3:
        raise LookupError("the first times")
    if how == "fail":
        raise Fail("in the task")
    return value


@task(takes_context=True, max_attempts=50, backoff=constant(0))
async def total(context: Any, values: list[int], more: int = 0) -> int:
    record("start", context)
    record("end", context)
    return sum(values) + more


def make_examples() -> list[int]:
    """Enqueue a chain, a group that is collected, and a workflow that fails and grows."""
    one = chain(call(step, 1), call(step, Previous()), call(total, [4, 5], Previous())).enqueue()
    two = (group(*(call(step, number) for number in range(5))) | call(total, more=1)).enqueue()
    workflow = Workflow("import")
    first = workflow.add(call(step, 1, how="grow"), name="1")
    bad = workflow.add(call(step, 2, how="fail"), name="2", after=[first])
    workflow.add(call(step, 3), name="3", after=[bad])
    mended = workflow.add(call(step, 4), name="4", after=[bad], run_when="failure")
    workflow.add(call(total, [1], mended.result), name="5")
    return [one.id, two.id, workflow.enqueue().id]


def make_random(seed: int, size: int, seconds: float) -> int:
    """Enqueue a workflow in which each node waits for some of those before it."""
    chance = random.Random(seed)
    callbacks = {f"on_{name}": call(told, name) for name in ("success", "failure", "finish")}
    workflow = Workflow(f"random {seed}", **callbacks)  # type: ignore[arg-type]  # By name.
    nodes: list[Any] = []
    for number in range(size):
        how = chance.choices(["", "fail", "grow", "again"], [8, 1, 2, 2])[0]
        given: Any = call(step, number, seconds, how)
        if how == "" and chance.random() < 0.2:
            given = group(given, chain(call(step, -1, seconds), call(step, Previous(), seconds)))
        after = chance.sample(nodes, min(len(nodes), chance.randrange(4)))
        run_when = chance.choices(["success", "finished", "failure"], [6, 3, 1])[0]
        nodes.append(workflow.add(given, name=f"{number}", after=after, run_when=run_when))
    return workflow.enqueue().id
