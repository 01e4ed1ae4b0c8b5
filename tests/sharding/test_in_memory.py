"""Tests of projects: shards whose jobs are in memory, or in the test's databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core import call, enqueue_many
from steady_queue_core.compat import InvalidTask, TaskResultDoesNotExist, task_backends
from steady_queue_core.sharding import ShardedBackend
from steady_queue_core.tasks.callbacks import share_a_database
from steady_queue_core.testing import (
    assert_num_tasks,
    assert_task_enqueued,
    captured_tasks,
    enqueued_tasks,
    override_backends,
    run_enqueued_tasks,
)

from ..core.samples import FRAMEWORK
from .places import Shards, on_sqlite, tasks_in
from .tasks import greet, greet_all, note, noted, once, ship


@pytest.fixture
def sharded(settings: Any) -> None:
    settings.TASKS = tasks_in("default", "other")


@pytest.mark.usefixtures("sharded")
def test_immediate_shards_run_at_once_and_are_found_again() -> None:
    with override_backends("immediate"):
        assert isinstance(task_backends["default"], ShardedBackend)
        results = enqueue_many(call(greet, number) for number in range(10))
        assert [each.return_value for each in results] == [f"hello, {n}" for n in range(10)]
        assert {each.id.partition(":")[0] for each in results} == {"east", "west"}
        for each in results:
            assert greet.get_result(each.id).return_value == each.return_value
            assert each.wait().is_finished
        with pytest.raises(InvalidTask):
            ship.enqueue(1)


@pytest.mark.usefixtures("sharded")
def test_dummy_shards_keep_what_is_enqueued_until_it_is_run() -> None:
    with override_backends("dummy"):
        with captured_tasks() as captured:
            result = greet.enqueue(17)
            later = greet.using(run_after=timedelta(hours=1)).enqueue(18)
        assert [each.args for each in captured] == [[17], [18]]
        assert_num_tasks(2, greet)
        assert_task_enqueued(greet, args=[17], times=1)
        assert len(enqueued_tasks()) == 2
        run_enqueued_tasks(until=timedelta(hours=2))
        for each in (result, later):
            each.refresh()
            assert each.is_finished
        assert not greet.get_result(later.id).cancel()
        with pytest.raises(TaskResultDoesNotExist):
            greet.get_result("east:1000")


@pytest.mark.usefixtures("sharded")
@pytest.mark.parametrize("kind", ["immediate", "dummy"])
def test_what_belongs_to_a_job_is_run_in_its_shard(kind: str) -> None:
    with override_backends(kind):
        result, several = noted.enqueue(17), greet_all.enqueue(17, [1, 2, 3])
        first, second = once.enqueue(17), once.enqueue(17)
        assert kind == "immediate" or (second.duplicate and first.id == second.id)
        run_enqueued_tasks()
        shard = result.id.partition(":")[0]
        assert several.id.startswith(f"{shard}:")
        found = [each for each in enqueued_tasks() if each.is_of(note) or each.is_of(greet)]
        assert {each.result.backend for each in found} == {shard}
        assert len(found) == 4
        assert all(each.result.is_finished for each in found)


@pytest.mark.usefixtures("sharded")
def test_callbacks_are_refused_where_a_backend_of_others_has_the_jobs(settings: Any) -> None:
    dummy = {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"}
    settings.TASKS = {**settings.TASKS, "foreign": dummy}
    backend: Any = task_backends["default"]
    assert not share_a_database(task_backends["foreign"], backend)
    assert not share_a_database(backend, task_backends["foreign"])
    assert share_a_database(backend, backend)
    assert not share_a_database(backend, task_backends["east"])


@on_sqlite
def test_jobs_in_the_databases_of_a_test_are_run(west: str, shards: Shards) -> None:
    results = enqueue_many(call(greet, number) for number in range(10))
    done = run_enqueued_tasks()
    assert len(done) == len(enqueued_tasks()) == 10
    for each in results:
        each.refresh()
        assert each.is_finished
