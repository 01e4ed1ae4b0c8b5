"""What belongs to a job or a batch is stored in its shard."""

from __future__ import annotations

import pytest

from steady_queue_core import (
    Batch,
    BatchResult,
    Previous,
    Workflow,
    call,
    chain,
    enqueue_many,
    group,
)
from steady_queue_core.compat import InvalidTask
from steady_queue_core.models import JobBatch

from ..core.driver import Driver
from .places import Shards, on_every_pair, on_sqlite
from .tasks import add, greet, greet_all, note, noted, report


def backends(shards: Shards, shard: str) -> list[str]:
    return [job.backend_name for job in shards.jobs(shard)]


@on_every_pair
def test_a_callback_is_stored_in_the_shard_of_its_job(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    result = shards.finish(noted.enqueue(key))
    first, second = shards.jobs("west")
    assert result.id == f"west:{first.pk}"
    assert (second.backend_name, second.task_path) == ("west", "tests.sharding.tasks.note")
    # It is called with the id by which the task finds the result.
    assert shards.backend.get_result(f"west:{second.pk}").return_value == f"noted {result.id}"
    assert shards.counts()["east"] == 0


@on_sqlite
def test_a_callback_has_the_id_of_its_job_whatever_has_become_of_the_settings(
    west: str, shards: Shards
) -> None:
    [key] = shards.keys("west")
    enqueue_many([call(noted.using(backend="west"), key), call(noted, key), call(noted, key)])
    for shards_left in (["east", "west"], ["east"], ["nowhere"]):
        shards.settings.TASKS["default"]["OPTIONS"] = {"shards": shards_left, "key": "customer_id"}
        shards.settings.TASKS = {**shards.settings.TASKS}
        [claim] = (driver := Driver(west)).claim(limit=1)
        done = driver.run(claim)
        assert done.outcome.sequel is not None
        [callback] = done.outcome.sequel.follow_ups
        driver.settle(done)
        assert f'"west:{claim.job_id}"' in callback.job.arguments
        assert callback.job.backend_name == "west"
        assert noted.get_result(f"west:{claim.job_id}").is_finished


@on_sqlite
def test_a_job_ends_with_its_callback_if_the_backend_of_its_task_is_gone(
    west: str, shards: Shards
) -> None:
    noted.enqueue(shards.keys("west")[0])
    shards.settings.TASKS = {name: shards.settings.TASKS[name] for name in ("east", "west")}
    Driver(west).work()
    job, callback = shards.jobs("west")
    assert (job.finished_at is None, callback.task_path) == (False, "tests.sharding.tasks.note")


@on_every_pair
def test_what_a_task_leaves_to_its_outcome_is_stored_there_too(west: str, shards: Shards) -> None:
    [key], others = shards.keys("west"), [*shards.keys("east"), *shards.keys("west")]
    result = shards.finish(greet_all.enqueue(key, others))
    assert result.errors == []
    assert backends(shards, "west") == ["west"] * 3
    assert shards.counts()["east"] == 0


@on_sqlite
def test_a_job_of_a_shard_that_is_draining_goes_on_there(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    result, second = greet_all.enqueue(key, [key]), noted.enqueue(key)
    options = {"key": "customer_id", "shards": ["east"], "draining": ["west"]}
    shards.settings.TASKS["default"]["OPTIONS"] = options
    shards.settings.TASKS = {**shards.settings.TASKS}
    assert shards.finish(result).errors == shards.finish(second).errors == []
    assert backends(shards, "west") == ["west"] * 4


@on_every_pair
def test_a_batch_has_all_of_its_members_in_one_shard(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    with Batch("of a customer", shard_key=key, on_success=call(note, "the batch")) as batch:
        greet.enqueue(east)
        enqueue_many([call(greet, key), call(greet, east)])
        with Batch("within") as inner:
            greet.enqueue(east)
    assert (batch.using, inner.using, batch.backend.alias) == (west, west, "west")
    for _ in range(2):
        Driver(west).work()
    batch.refresh()
    assert (batch.total, batch.completed, batch.is_finished) == (4, 4, True)
    assert backends(shards, "west") == ["west"] * 5
    assert shards.counts()["east"] == 0
    assert JobBatch.objects.using(west).get(pk=batch.id).backend_name == "west"
    assert Batch.get(batch.id, backend="west").description == "of a customer"


@on_sqlite
def test_a_batch_can_name_its_shard(west: str, shards: Shards) -> None:
    with Batch(backend="west"):
        greet.enqueue(shards.keys("east")[0])
    assert shards.counts() == {"east": 0, "west": 1}


@on_sqlite
def test_a_batch_without_a_shard_is_refused(west: str, shards: Shards) -> None:
    with pytest.raises(
        InvalidTask,
        match=r"^TASKS\['default'\] has several shards, and all of a batch is in one of them\. "
        r"Choose it by a key, shard_key=\.\.\., or by its name: backend='east' or 'west'\.$",
    ):
        Batch()
    for kind in (Batch, BatchResult):
        with pytest.raises(
            InvalidTask,
            match=r"^TASKS\['default'\] has several shards, and the id of a batch says nothing of "
            r"its own\. Name the shard: backend='east' or 'west'\.$",
        ):
            kind.get(1)


@on_sqlite
def test_a_batch_elsewhere_takes_no_calls_of_shards(west: str, shards: Shards) -> None:
    shards.settings.TASKS["default"]["OPTIONS"]["shards"] = ["east"]
    shards.settings.TASKS = {**shards.settings.TASKS}
    with (
        pytest.raises(InvalidTask, match="cannot be added to batch"),
        Batch(backend="west"),
    ):
        greet.enqueue(1)


@on_every_pair
def test_a_chain_is_stored_in_the_shard_of_its_first_call(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    steps = chain(
        call(add, key, 1), call(add, east, Previous()), call(add, east, number=Previous())
    )
    result = steps.enqueue()
    assert result.using == west
    for _ in range(3):
        Driver(west).work()
    assert result.wait(1).values() == [2, 3, 4]
    assert backends(shards, "west") == ["west"] * 3


@on_sqlite
def test_so_are_a_group_and_a_workflow(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    grouped = group(call(add, key, 1), call(add, east, 1), on_finish=call(note, "done"))
    assert grouped.enqueue().using == west
    workflow = Workflow()
    workflow.add(call(add, east, 2), after=[workflow.add(call(add, key, 1))])
    assert workflow.enqueue().using == west
    assert shards.counts()["east"] == 0
    # In an open batch they are part of that.
    with Batch(backend="east") as batch:
        chain(call(add, key, 1), call(report)).enqueue()
    assert batch.total == 1
    assert shards.counts()["east"] == 2


@on_sqlite
def test_the_first_call_has_to_have_a_key(west: str, shards: Shards) -> None:
    with pytest.raises(InvalidTask, match=r"^The shard key of tests\.sharding\.tasks\.note is not"):
        chain(call(note, "x"), call(add, 1, 1)).enqueue()
