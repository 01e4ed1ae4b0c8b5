"""What was enqueued, seen from a test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import TestCase

from steady_queue_core.compat import task_backends
from steady_queue_core.testing import (
    TaskAssertions,
    assert_no_tasks_enqueued,
    assert_num_tasks,
    assert_task_enqueued,
    captured_tasks,
    enqueued_tasks,
    override_backends,
    run_enqueued_tasks,
)
from steady_queue_core.testing.fixture import TaskQueueFixture

from ..app.models import Item
from ..core.samples import FRAMEWORK
from . import samples

HOUR = timedelta(hours=1)
DUE = datetime(2030, 1, 1, tzinfo=UTC)
PATHS = {
    "stored": "steady_queue_core.backend.SteadyQueueBackend",
    "kept": "steady_queue_core.testing.DummyBackend",
    "Django's": f"{FRAMEWORK}.backends.dummy.DummyBackend",
}

pytestmark = pytest.mark.django_db


@pytest.fixture(params=PATHS)
def _backend(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": PATHS[request.param], "QUEUES": []}}


@pytest.mark.usefixtures("_backend")
def test_what_was_enqueued_is_found_by_what_is_said_of_it() -> None:
    assert_no_tasks_enqueued()
    samples.note.using(queue_name="mail", priority=3).enqueue(what=[1, None])
    samples.note.using(run_after=HOUR).enqueue("x")
    samples.note.using(run_after=DUE).enqueue("x")
    samples.chain.enqueue(1)
    assert_num_tasks(4)
    assert_num_tasks(3, samples.note)
    assert_no_tasks_enqueued(samples.fail)
    found = assert_task_enqueued(samples.note, kwargs={"what": [1, None]}, queue_name="mail")
    assert (found.priority, found.args, found.is_of(samples.note)) == (3, [], True)
    assert_task_enqueued(samples.note, args=["x"], times=2)
    assert_task_enqueued(samples.note, run_after=HOUR, times=1)
    assert_task_enqueued(samples.note, run_after=DUE, times=1)
    assert_task_enqueued(samples.chain, args=[1], kwargs={}, priority=0, times=1)


@pytest.mark.usefixtures("_backend")
def test_what_was_not_enqueued_is_told_with_what_was() -> None:
    with pytest.raises(AssertionError, match=r"note was never enqueued\. Nothing was enqueued"):
        assert_task_enqueued(samples.note)
    samples.note.using(queue_name="mail", priority=3).enqueue("x")
    for wanted in (
        {"args": ["y"]}, {"kwargs": {"what": "x"}}, {"queue_name": "web"}, {"priority": 4},
        {"run_after": HOUR}, {"run_after": DUE},
    ):  # fmt: skip
        with pytest.raises(AssertionError) as failed:
            assert_task_enqueued(samples.note, **wanted)
        [(name, value)] = wanted.items()
        path = samples.note.module_path
        assert str(failed.value) == (
            f"{path} was never enqueued with {name}={value!r}. Enqueued:\n"
            f"  {path}: args=['x'], kwargs={{}}, queue_name='mail', priority=3"
        )
    with pytest.raises(AssertionError, match=r"was 1 times, not 2, enqueued with args=\['x'\]"):
        assert_task_enqueued(samples.note, args=["x"], times=2)
    with pytest.raises(AssertionError, match="1 calls were enqueued, not 0"):
        assert_no_tasks_enqueued()
    with pytest.raises(AssertionError, match=r"0 calls of .*fail were enqueued, not 1\. Enqueued"):
        assert_num_tasks(1, samples.fail)


def test_a_long_list_is_cut() -> None:
    for number in range(25):
        samples.note.enqueue(number)
    with pytest.raises(AssertionError, match=r"\n  and 5 more$"):
        assert_no_tasks_enqueued()


@pytest.mark.parametrize("kind", ["stored", "kept"])
def test_arguments_are_compared_as_they_are_stored(kind: str, settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": PATHS[kind], "QUEUES": []}}
    item, other = Item.objects.create(name="a"), Item.objects.create(name="b")
    with captured_tasks() as captured:
        samples.note.enqueue({"item": item, "set": {2, 1}, "tuple": (1,)})
    same = {"set": {1, 2}, "tuple": (1,), "item": Item(pk=item.pk)}
    for among in (None, captured):
        assert_task_enqueued(samples.note, args=[same], among=among)
        for different in ({**same, "item": other}, {**same, "tuple": [1]}):
            with pytest.raises(AssertionError, match="never"):
                assert_task_enqueued(samples.note, args=[different], among=among)


def test_what_has_run_was_enqueued() -> None:
    samples.chain.enqueue(1)
    run_enqueued_tasks()
    assert_num_tasks(2, samples.chain)
    assert [each.result.status for each in enqueued_tasks()] == ["SUCCESSFUL"] * 2


@pytest.mark.parametrize("kind", [*PATHS, "immediate"])
def test_a_block_is_captured(kind: str, settings: Any) -> None:
    path = PATHS.get(kind, f"{FRAMEWORK}.backends.immediate.ImmediateBackend")
    settings.TASKS = {"default": {"BACKEND": path, "QUEUES": []}}
    samples.note.enqueue("before")
    with captured_tasks() as captured:
        samples.note.using(queue_name="mail").enqueue("inside")
        assert len(captured) == 1
    samples.note.enqueue("after")
    [call] = captured
    assert (call.args, call.queue_name, call.run_after) == (["inside"], "mail", None)
    assert_no_tasks_enqueued(samples.chain, among=captured)


def test_options_are_captured_as_they_were_given() -> None:
    with captured_tasks() as captured:
        samples.note.using(run_after=HOUR).enqueue(1)
        samples.note.using(run_after=DUE).enqueue(2)
        samples.only_one.enqueue()
        samples.only_one.enqueue()
    assert [call.run_after for call in captured] == [HOUR, DUE, None]
    assert_task_enqueued(samples.note, run_after=HOUR, args=[1], times=1, among=captured)
    assert_task_enqueued(samples.note, run_after=DUE, args=[2], times=1, among=captured)


def test_what_waits_for_the_commit_is_captured_then(
    django_capture_on_commit_callbacks: Any,
) -> None:
    with captured_tasks() as captured, django_capture_on_commit_callbacks(execute=True):
        samples.note.using(enqueue_on_commit=True).enqueue(1)
        assert captured == []
    assert len(captured) == 1


class AsMethods(TaskAssertions, TestCase):
    def test_they_do_the_same(self) -> None:
        self.assertNoTasksEnqueued()
        samples.note.enqueue(1)
        assert self.assertTaskEnqueued(samples.note, args=[1]).args == [1]
        self.assertNumTasks(1, samples.note)
        self.assertNoTasksEnqueued(samples.chain)
        with pytest.raises(AssertionError):
            self.assertTaskEnqueued(samples.chain, times=1)


@override_backends("dummy")
class InMemory(TaskAssertions, TestCase):
    def test_a_test_begins_with_nothing(self) -> None:
        self.assertNoTasksEnqueued()
        samples.note.enqueue(1)

    def test_and_so_does_the_next(self) -> None:
        self.assertNoTasksEnqueued()
        samples.note.enqueue(1)


def test_the_fixture_has_all_of_it(steady_queue: TaskQueueFixture) -> None:
    steady_queue.assert_none_enqueued()
    with steady_queue.captured() as captured:
        samples.note.enqueue(1)
    steady_queue.assert_enqueued(samples.note, args=[1])
    steady_queue.assert_num_enqueued(1, samples.note, among=captured)
    assert len(steady_queue.enqueued) == 1
    assert [each.return_value for each in steady_queue.run()] == [1]


@pytest.mark.steady_queue("dummy", max_attempts=7)
class TestMarked:
    def test_the_mark_chooses_the_backend(self, steady_queue: TaskQueueFixture) -> None:
        assert task_backends["default"].settings.max_attempts == 7
        samples.note.enqueue(1)
        steady_queue.assert_num_enqueued(1)

    @pytest.mark.steady_queue("immediate")
    def test_the_nearest_mark_counts(self, steady_queue: TaskQueueFixture) -> None:
        assert samples.note.enqueue(1).is_finished
