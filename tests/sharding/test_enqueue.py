"""Calls go to the shard of their key, and are what they would be in a backend alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections, transaction
from django.db.transaction import TransactionManagementError

from steady_queue_core import call, enqueue_many
from steady_queue_core.compat import InvalidTask, TaskResultStatus, task_backends, task_enqueued
from steady_queue_core.models import BlockedExecution, ReadyExecution, ScheduledExecution

from ..app.models import Item
from ..core.driver import Driver
from .places import Shards, on_every_pair, on_sqlite
from .tasks import anything, bill, count, greet, noted, once, one_at_a_time, pack, report, ship


@on_every_pair
def test_each_call_is_stored_in_the_shard_of_its_key(west: str, shards: Shards) -> None:
    for shard in ("east", "west"):
        first, second = shards.keys(shard, 2)
        greet.using(queue_name="mail", priority=7).enqueue(first)
        greet.using(run_after=timedelta(hours=1)).enqueue(customer_id=second)
        jobs = list(shards.jobs(shard))
        assert [job.backend_name for job in jobs] == [shard, shard]
        assert (jobs[0].queue_name, jobs[0].priority) == ("mail", 7)
        using = shards.databases[shard]
        assert ReadyExecution.objects.using(using).get().pk == jobs[0].pk
        assert ScheduledExecution.objects.using(using).get().pk == jobs[1].pk


@on_every_pair
def test_a_shard_can_be_chosen_for_one_call(west: str, shards: Shards) -> None:
    [key] = shards.keys("east")
    result = greet.using(backend="west").enqueue(key)
    assert shards.counts() == {"east": 0, "west": 1}
    # It is a call of that backend, and so is its result.
    assert (result.backend, result.id) == ("west", str(shards.jobs("west").get().pk))


@on_sqlite
@pytest.mark.parametrize("name", ["greet", "bill", "default", "named"])
def test_the_key_is_found_wherever_the_argument_is_given(
    west: str, shards: Shards, name: str
) -> None:
    [key] = shards.keys("east")
    calls: dict[str, Any] = {
        "greet": lambda: greet.enqueue(key, "ho"),
        "bill": lambda: bill.enqueue(1, customer_id=key),
        "default": lambda: bill.enqueue(1),
        "named": lambda: anything.enqueue(1, 2, customer_id=key),
    }
    calls[name]()
    found = shards.backend.shard_for(7).alias if name == "default" else "east"
    assert shards.counts()[found] == 1


@on_sqlite
def test_equal_keys_of_other_types_are_one_key(west: str, shards: Shards) -> None:
    own = UUID(int=17)
    for same in ([17, "17"], [own, str(own)]):
        assert len({shards.backend.shard_for(key).alias for key in same}) == 1


@on_sqlite
def test_a_model_instance_is_a_key(west: str, shards: Shards) -> None:
    item = Item.objects.create()
    count.enqueue(item)
    found = shards.backend.shard_for(f"testapp.item/{item.pk}")
    assert found is shards.backend.shard_for(item)
    assert shards.counts()[found.alias] == 1
    with pytest.raises(InvalidTask, match=r"is an instance of testapp\.Item that is not saved"):
        shards.backend.shard_for(Item())


@on_sqlite
def test_a_task_can_say_itself_what_its_key_is(west: str, shards: Shards) -> None:
    for shard in ("east", "west"):
        [key] = shards.keys(shard)
        pack.enqueue({"customer": key}, 1)
        assert shards.counts()[shard] == 1
    for _ in range(3):
        report.enqueue()
    assert shards.counts()[shards.backend.shard_for("one place").alias] == 4


@on_sqlite
def test_a_call_can_say_so_too(west: str, shards: Shards) -> None:
    east, west_key = shards.keys("east")[0], shards.keys("west")[0]
    greet.using(shard_key=west_key).enqueue(east)
    anything.using(shard_key=lambda *args: args[1]).enqueue(None, west_key)
    assert shards.counts() == {"east": 0, "west": 2}
    options: Any = {"shard_key": 1.5}
    with pytest.raises(InvalidTask, match=r"^tests\.sharding\.tasks\.greet: shard_key must be "):
        greet.using(**options)


@on_sqlite
def test_the_key_can_be_that_of_a_function(west: str, shards: Shards) -> None:
    shards.configure(key="tests.sharding.tasks.key_of_order")
    [key] = shards.keys("west")
    ship.enqueue(key)
    ship.enqueue(order=key)
    assert shards.counts() == {"east": 0, "west": 2}


PATH = "tests.sharding.tasks"
UNKNOWN = (
    r"^The shard key of tests\.sharding\.tasks\.{0} is not known: "
    r"TASKS\['default'\]\['OPTIONS'\]\['key'\] is {1}\. Give its @task a shard_key=\.\.\., such as "
    r"a function of its arguments, or the call: using\(shard_key=\.\.\.\), or choose a shard: "
    r"using\(backend='east'\)\.$"
)


@on_sqlite
@pytest.mark.parametrize(
    ("call", "key", "message"),
    [
        (
            lambda: ship.enqueue(1),
            "customer_id",
            UNKNOWN.format("ship", r"'customer_id', which no argument of ship\(order\) is called"),
        ),
        (
            lambda: anything.enqueue(1),
            "customer_id",
            UNKNOWN.format(
                "anything", r"'customer_id', which no argument of anything\(\*args, \*\*kwargs\) "
                "is called",
            ),
        ),
        (
            lambda: greet.enqueue(1),
            None,
            UNKNOWN.format("greet", "None, and the task says nothing itself"),
        ),
        (
            lambda: greet.enqueue(None),
            "customer_id",
            r"^The shard key of tests\.sharding\.tasks\.greet is None; give a string, a number, a "
            r"UUID, or a model instance\.$",
        ),
        (
            lambda: greet.enqueue([1]),
            "customer_id",
            r"^The shard key of tests\.sharding\.tasks\.greet is of type list; give a string, a "
            r"number, a UUID, or a model instance\.$",
        ),
        (lambda: greet.enqueue("a\0b"), "customer_id", r"greet has a NUL character"),
        (
            lambda: ship.enqueue(1),
            f"{PATH}.broken_key",
            r"^The shard key of tests\.sharding\.tasks\.ship could not be computed: LookupError: "
            r"no customer\. tests\.sharding\.tasks\.broken_key is called with the task, the list "
            r"of its arguments, and the dict of those that have names\.$",
        ),
        (
            lambda: pack.enqueue({}),
            "customer_id",
            r"^The shard key of tests\.sharding\.tasks\.pack could not be computed: KeyError: "
            r"'customer'\. Its shard_key=\.\.\. is called with the arguments of the task\.$",
        ),
    ],
)  # fmt: skip
def test_a_call_without_a_key_is_refused(
    west: str, shards: Shards, call: Any, key: str | None, message: str
) -> None:
    shards.configure(key=key)
    with pytest.raises(InvalidTask, match=message):
        call()
    assert shards.counts() == {"east": 0, "west": 0}


@on_sqlite
def test_a_call_that_does_not_fit_is_refused_before_its_key_is_asked(
    west: str, shards: Shards
) -> None:
    misfit: Any = greet
    with pytest.raises(TypeError, match=r"greet\(customer_id, text='hello'\) cannot be called"):
        misfit.enqueue(1, 2, 3)


@on_every_pair
def test_results_are_found_by_the_id_that_the_caller_gets(west: str, shards: Shards) -> None:
    for shard in ("east", "west"):
        [key] = shards.keys(shard)
        result = greet.enqueue(key)
        job = shards.jobs(shard).get()
        assert (result.backend, result.id) == ("default", f"{shard}:{job.pk}")
        assert result.task.backend == "default"
        result = shards.finish(result)
        assert result.return_value == f"hello, {key}"
        assert (result.backend, result.id) == ("default", f"{shard}:{job.pk}")
        for found in (greet.get_result(result.id), async_to_sync(greet.aget_result)(result.id)):
            assert found == result
        assert result.wait(1).return_value == async_to_sync(result.await_result)(1).return_value


@on_every_pair
def test_limits_and_unique_keys_hold_in_the_shard(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    first, second = one_at_a_time.enqueue(key), one_at_a_time.enqueue(key)
    blocked = BlockedExecution.objects.using(west).get()
    assert second.id == f"west:{blocked.pk}"
    results = [once.enqueue(key) for _ in range(2)]
    assert results[0].id == results[1].id
    assert [each.duplicate for each in results] == [False, True]
    assert results[1].backend == "default"
    assert shards.counts() == {"east": 0, "west": 3}
    Driver(west).work()
    results[1].refresh()
    assert results[1].status == TaskResultStatus.SUCCESSFUL
    assert shards.finish(first).is_finished


@on_every_pair
def test_a_call_waits_for_the_commit_of_the_caller(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    waiting = greet.using(enqueue_on_commit=True)
    twice = once.using(enqueue_on_commit=True)
    with transaction.atomic():
        result = waiting.enqueue(key)
        others = [twice.enqueue(key) for _ in range(2)]
        assert (result.id, result.backend, shards.counts()["west"]) == ("", "default", 0)
        with pytest.raises(TransactionManagementError, match="is not stored yet"):
            result.wait(0)
    jobs = shards.jobs("west")
    assert result.id == f"west:{jobs[0].pk}"
    assert [each.id for each in others] == [f"west:{jobs[1].pk}"] * 2
    assert [each.backend for each in others] == ["default"] * 2
    assert [each.duplicate for each in others] == [False, True]
    assert shards.finish(result).return_value == f"hello, {key}"
    with transaction.atomic():
        gone = waiting.enqueue(key)
        transaction.set_rollback(True)
    assert (gone.id, shards.counts()["west"]) == ("", 2)


@on_sqlite
def test_a_savepoint_that_is_rolled_back_takes_its_calls_along(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    waiting = greet.using(enqueue_on_commit=True)
    with transaction.atomic():
        kept = waiting.enqueue(key)
        with transaction.atomic():
            gone = waiting.enqueue(key)
            transaction.set_rollback(True)
    assert kept.id == f"west:{shards.jobs('west').get().pk}"
    assert gone.id == ""


@on_sqlite
def test_coroutines_enqueue_too(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    result = async_to_sync(greet.aenqueue)(key)
    assert result.id == f"west:{shards.jobs('west').get().pk}"
    async_to_sync(result.arefresh)()


@on_every_pair
def test_the_job_is_part_of_a_transaction_on_its_database(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    with transaction.atomic(using=west):
        greet.enqueue(key)
        transaction.set_rollback(True, using=west)
    assert shards.counts()["west"] == 0


@on_every_pair
def test_a_job_can_be_cancelled(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    result = greet.enqueue(key)
    assert result.cancel()
    assert not async_to_sync(result.acancel)()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED


@on_sqlite
def test_signals_and_workers_speak_of_the_shard(west: str, shards: Shards) -> None:
    told = []

    def note(task_result: Any, **kwargs: Any) -> None:
        told.append((task_result.backend, task_result.id))

    task_enqueued.connect(note)
    try:
        [key] = shards.keys("west")
        result = greet.enqueue(key)
    finally:
        task_enqueued.disconnect(note)
    job = shards.jobs("west").get()
    assert told == [("west", str(job.pk))]
    assert ":".join(told[0]) == result.id


@on_sqlite
def test_the_options_of_a_shard_are_those_of_its_jobs(west: str, shards: Shards) -> None:
    shards.configure(max_attempts=4)
    [key] = shards.keys("west")
    greet.enqueue(key)
    greet.using(backend="east").enqueue(key)
    assert [shards.jobs(shard).get().max_attempts for shard in ("east", "west")] == [4, 4]


@on_sqlite
def test_a_task_is_validated_as_its_shards_do(west: str, shards: Shards) -> None:
    shards.settings.TASKS["west"]["QUEUES"] = ["mail"]
    shards.settings.TASKS = {**shards.settings.TASKS}
    with pytest.raises(InvalidTask, match=r"^The shard 'west' refuses it: Queue 'default' "):
        task_backends["default"].validate_task(greet)
    greet.using(queue_name="mail")
    options: Any = {"run_after": "tomorrow"}
    with pytest.raises(InvalidTask, match="run_after must be a datetime, not of type str"):
        greet.using(queue_name="mail", **options)


@on_sqlite
def test_a_shard_that_gets_no_more_calls_still_has_results(west: str, shards: Shards) -> None:
    [key] = shards.keys("west")
    result = greet.enqueue(key)
    for options in ({"shards": ["east"]}, {"shards": ["east"], "draining": ["west"]}):
        tasks = {**shards.settings.TASKS}
        tasks["default"] = {**tasks["default"], "OPTIONS": {"key": "customer_id", **options}}
        shards.settings.TASKS = tasks
        greet.get_result(result.id)
        assert greet.enqueue(key).id.startswith("east:")
    assert shards.finish(result).return_value == f"hello, {key}"


@on_sqlite
def test_a_shard_that_is_away_does_not_concern_the_others(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    connections[west].close()
    connections[west].settings_dict["NAME"] = "/nowhere/at/all.sqlite3"
    result = greet.enqueue(east)
    enqueue_many([call(greet, east), call(noted, east)])
    assert Driver("default").finish(result).return_value == f"hello, {east}"
    with pytest.raises(DatabaseError):
        greet.enqueue(key)
