"""Many calls at once: one transaction for each shard, results in the order of the calls."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Unique, aenqueue_many, call, enqueue_many
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.compat import InvalidTask, task_backends
from steady_queue_core.errors import DuplicateTask, PartlyEnqueued, QueueFull
from steady_queue_core.middleware import Middleware

from .places import Shards, on_every_pair, on_sqlite
from .tasks import greet, once

raising = once.using(unique=Unique(on_conflict="raise"))


class Counting(Middleware):
    """Counts the calls of each bulk."""

    bulks: list[int] = []

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        self.bulks.append(len(calls))
        return proceed(calls)


@on_every_pair
def test_results_are_those_of_the_calls_in_their_order(west: str, shards: Shards) -> None:
    results = enqueue_many(call(greet, number) for number in range(40))
    assert [result.args for result in results] == [[number] for number in range(40)]
    for number, result in enumerate(results):
        shard = shards.backend.shard_for(number).alias
        job = shards.jobs(shard).get(pk=result.id.removeprefix(f"{shard}:"))
        assert (result.backend, job.backend_name) == ("default", shard)
        assert f'"args":[{number}]' in job.arguments.replace(" ", "")
    assert sum(shards.counts().values()) == 40
    assert min(shards.counts().values()) > 5
    assert async_to_sync(aenqueue_many)([call(greet, 1)])[0].args == [1]


@on_every_pair
def test_each_shard_gets_its_calls_in_few_statements(west: str, shards: Shards) -> None:
    enqueue_many(call(greet, number) for number in range(10))
    with (
        CaptureQueriesContext(connections["default"]) as east_queries,
        CaptureQueriesContext(connections[west]) as west_queries,
    ):
        enqueue_many(call(greet, number) for number in range(500))
    assert 0 < len(east_queries) <= 12
    assert 0 < len(west_queries) <= 12


@on_sqlite
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (call(greet), TypeError, r"^calls\[30\]: tests.* missing a required argument"),
        (call(greet, None), InvalidTask, r"^calls\[30\]: The shard key of .* is None"),
        (call(greet, 1, object()), TaskArgumentError, r"^calls\[30\]: args\[1\]"),
    ],
)
def test_one_bad_call_stores_nothing(
    west: str, shards: Shards, bad: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        enqueue_many([*(call(greet, number) for number in range(30)), bad])
    assert shards.counts() == {"east": 0, "west": 0}


@on_sqlite
def test_a_full_queue_in_one_shard_stores_nothing_in_another(west: str, shards: Shards) -> None:
    shards.settings.TASKS["west"]["OPTIONS"]["queue_limits"] = {"*": 3}
    shards.settings.TASKS = {**shards.settings.TASKS}
    east, full = shards.keys("east"), shards.keys("west", 4)
    with pytest.raises(QueueFull):
        enqueue_many(call(greet, key) for key in [*east, *full])
    assert shards.counts() == {"east": 0, "west": 0}
    enqueue_many(call(greet, key) for key in [*east, *full[:3]])
    assert shards.counts() == {"east": 1, "west": 3}


@on_every_pair
def test_calls_of_one_shard_are_stored_all_or_none(west: str, shards: Shards) -> None:
    first, second = shards.keys("west", 2)
    taken = raising.enqueue(second)
    with pytest.raises(DuplicateTask) as caught:
        enqueue_many([call(greet, first), call(raising, second)])
    assert shards.counts() == {"east": 0, "west": 1}
    assert (caught.value.result.backend, caught.value.result.id) == ("default", taken.id)


@on_every_pair
def test_what_was_stored_before_another_shard_refused_is_told(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    raising.enqueue(key)
    calls = [call(greet, key), call(greet, east), call(raising, key), call(greet, east, "again")]
    with pytest.raises(
        PartlyEnqueued,
        match=r"^Some calls were not enqueued: the shard 'west' refused 2 of 4 calls: "
        r"DuplicateTask: tests\.sharding\.tasks\.once was not enqueued: .*\. The attribute stored "
        r"has the results of those that were\.$",
    ) as caught:
        enqueue_many(calls)
    assert shards.counts() == {"east": 2, "west": 1}
    stored = caught.value.stored
    assert pickle.loads(pickle.dumps(PartlyEnqueued("why", stored={1: "one"}))).stored == {1: "one"}
    assert {number: result.args for number, result in stored.items()} == {
        1: [east], 3: [east, "again"],
    }  # fmt: skip
    assert isinstance(caught.value.__cause__, DuplicateTask)
    assert shards.finish(stored[3]).return_value == f"again, {east}"


@on_sqlite
def test_it_names_the_calls_of_other_backends_as_well(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    raising.enqueue(key)
    alone = greet.using(backend="east")
    with pytest.raises(PartlyEnqueued) as caught:
        enqueue_many([call(alone, 0), call(raising, key), call(greet, east)])
    assert {n: each.backend for n, each in caught.value.stored.items()} == {0: "east", 2: "default"}


@on_sqlite
def test_a_shard_whose_database_is_away_keeps_the_others_from_storing(
    west: str, shards: Shards
) -> None:
    keys = [*shards.keys("east"), *shards.keys("west")]
    connections[west].close()
    connections[west].settings_dict["NAME"] = "/nowhere/at/all.sqlite3"
    with pytest.raises(DatabaseError):
        enqueue_many(call(greet, key) for key in keys)
    assert shards.jobs("east").count() == 0


@on_sqlite
def test_those_that_wait_for_the_commit_follow_it(west: str, shards: Shards) -> None:
    waiting = greet.using(enqueue_on_commit=True)
    with transaction.atomic():
        results = enqueue_many(call(waiting, number) for number in range(10))
        assert {result.id for result in results} == {""}
    assert sum(shards.counts().values()) == 10
    for number, result in enumerate(results):
        assert result.id.startswith(f"{shards.backend.shard_for(number).alias}:")


@on_sqlite
def test_the_middleware_of_each_shard_sees_its_calls(west: str, shards: Shards) -> None:
    Counting.bulks.clear()
    shards.configure(middleware=[f"{__name__}.Counting"])
    east, others = shards.keys("east", 2), shards.keys("west", 3)
    # Each caller comes to the shards in the same order, whatever its calls: see storing.py.
    enqueue_many(call(greet, key) for key in [*others, *east])
    enqueue_many(call(greet, key) for key in [*east, *others])
    assert Counting.bulks == [2, 3, 2, 3]
    assert task_backends["default"] is shards.backend


@on_every_pair
def test_transactions_on_all_shards_take_everything_back(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    raising.enqueue(key)
    with (
        pytest.raises(PartlyEnqueued),
        transaction.atomic("default"),
        transaction.atomic(west),
    ):
        enqueue_many([call(greet, east), call(raising, key)])
    assert shards.counts() == {"east": 0, "west": 1}
