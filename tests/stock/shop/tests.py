"""The tests that a user would write: Django's own test cases, under ``manage.py test``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from unittest import mock

from django.db import IntegrityError, connection, connections, transaction
from django.test import Client, TestCase, TransactionTestCase, override_settings

from steady_queue_core.models import Job, ReadyExecution
from steady_queue_core.testing import (
    TaskAssertions,
    arun_enqueued_tasks,
    captured_tasks,
    override_backends,
    run_enqueued_tasks,
)

from .framework import BACKENDS, TaskResultStatus, task_backends
from .models import Customer, Order
from .tasks import add, confirm, greet, ship


def waiting() -> list[tuple[str, list[Any]]]:
    """Return the name and the arguments of every job that is ready."""
    jobs = Job.objects.filter(readyexecution__isnull=False).order_by("pk")
    return [(job.task_path.rpartition(".")[2], json.loads(job.arguments)["args"]) for job in jobs]


def names() -> list[str]:
    return [name for name, _ in waiting()]


class InsideTestCase(TestCase):
    def test_a_job_can_be_looked_at(self) -> None:
        result = add.enqueue(1, b=2)
        self.assertEqual(names(), ["add"])
        found = add.get_result(result.id)
        self.assertEqual((found.args, found.kwargs), ([1], {"b": 2}))
        self.assertEqual(found.status, TaskResultStatus.READY)

    def test_nothing_is_left_of_other_tests(self) -> None:
        self.assertFalse(Job.objects.exists())
        self.assertFalse(ReadyExecution.objects.exists())
        add.enqueue(1, 2)

    def test_jobs_that_are_enqueued_on_commit_can_be_captured(self) -> None:
        with self.captureOnCommitCallbacks() as callbacks:
            transaction.on_commit(partial(add.enqueue, 1, 2))
        self.assertEqual(len(callbacks), 1)
        self.assertEqual(names(), [])
        with self.captureOnCommitCallbacks(execute=True):
            transaction.on_commit(partial(add.enqueue, 1, 2))
        self.assertEqual(names(), ["add"])

    def test_an_enqueue_adds_no_callback_of_its_own(self) -> None:
        with self.captureOnCommitCallbacks() as callbacks:
            add.enqueue(1, 2)
        self.assertEqual(callbacks, [])

    def test_a_task_that_waits_for_the_commit_can_be_captured(self) -> None:
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            result = ship.enqueue(7)
            self.assertEqual(result.id, "")
        self.assertEqual(len(callbacks), 1)
        self.assertEqual(names(), ["ship"])
        self.assertEqual(ship.get_result(result.id).args, [7])

    def test_an_error_in_atomic_takes_the_job_along(self) -> None:
        add.enqueue(1, 1)
        with self.assertRaises(IntegrityError), transaction.atomic():
            add.enqueue(2, 2)
            Order.objects.create(pk=1)
        with transaction.atomic():
            sid = transaction.savepoint()
            add.enqueue(3, 3)
            transaction.savepoint_rollback(sid)
            add.enqueue(4, 4)
        self.assertEqual([args for _, args in waiting()], [[1, 1], [4, 4]])

    def test_a_signal_receiver_enqueues(self) -> None:
        customer = Customer.objects.create_user("ada")
        order = Order.objects.create(customer=customer)
        self.assertEqual(waiting(), [("confirm", [order.pk])])

    async def test_coroutines_enqueue(self) -> None:
        results = await asyncio.gather(*(add.aenqueue(n, n) for n in range(5)))
        self.assertEqual(len({result.id for result in results}), 5)
        found = await add.aget_result(results[3].id)
        self.assertEqual(found.args, [3, 3])


class InsideViews(TestCase):
    def setUp(self) -> None:
        self.ada = Customer.objects.create_user("ada", nickname="Ada")
        self.client.force_login(self.ada)

    def test_a_view_enqueues(self) -> None:
        response = self.client.get("/sum/")
        self.assertEqual(add.get_result(response.content.decode()).args, [1, 2])

    async def test_an_async_view_enqueues(self) -> None:
        response = await self.async_client.get("/sum-later/")
        self.assertEqual(response.status_code, 200)
        self.assertEqual(await Job.objects.acount(), 1)

    def test_a_view_enqueues_on_commit(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            self.client.get("/sum-on-commit/")
        self.assertEqual(names(), ["add"])

    def test_the_user_of_the_request_is_an_argument(self) -> None:
        response = self.client.get("/welcome/")
        [reference] = greet.get_result(response.content.decode()).args
        self.assertEqual(str(reference), "'shop'.'customer'")
        self.assertEqual(reference.pk, self.ada.pk)


@contextmanager
def atomic_requests() -> Iterator[None]:
    with mock.patch.dict(connection.settings_dict, {"ATOMIC_REQUESTS": True}):
        yield


class WithTheKit(TaskAssertions, TestCase):
    """The test of a view, from the request to what its task has done."""

    def test_an_order_is_confirmed(self) -> None:
        customer = Customer.objects.create_user("ada")
        order = Order.objects.create(customer=customer)
        self.assertTaskEnqueued(confirm, args=[order.pk])
        run_enqueued_tasks()
        order.refresh_from_db()
        self.assertIsNotNone(order.confirmed_at)

    def test_a_view_enqueues_and_its_task_runs(self) -> None:
        self.client.force_login(Customer.objects.create_user("ada", nickname="Ada"))
        with captured_tasks() as captured:
            self.client.get("/welcome/")
        self.assertNumTasks(1, greet, among=captured)
        [result] = run_enqueued_tasks()
        self.assertEqual(result.return_value, "Hello, Ada!")

    def test_a_view_enqueues_for_after_the_commit(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            self.client.get("/sum-on-commit/")
        self.assertEqual([result.return_value for result in run_enqueued_tasks()], [11])

    async def test_an_async_view_enqueues(self) -> None:
        await self.async_client.get("/sum-later/")
        [result] = await arun_enqueued_tasks()
        self.assertEqual(result.return_value, 7)


@override_backends("immediate")
class WithTheImmediateBackend(TestCase):
    def test_a_signal_receiver_runs_its_task(self) -> None:
        order = Order.objects.create(customer=Customer.objects.create_user("ada"))
        order.refresh_from_db()
        self.assertIsNotNone(order.confirmed_at)


class RealTransactions(TransactionTestCase):
    def setUp(self) -> None:
        self.careless = Client(raise_request_exception=False)
        self.careless.force_login(Customer.objects.create_user("ada"))

    def test_without_atomic_requests_a_job_outlives_the_error_of_its_view(self) -> None:
        self.assertEqual(self.careless.get("/sum/?fail").status_code, 500)
        self.assertEqual(names(), ["add"])

    def test_with_atomic_requests_an_error_takes_the_job_along(self) -> None:
        with atomic_requests():
            self.assertEqual(self.careless.get("/sum/?fail").status_code, 500)
            self.assertEqual(names(), [])
            self.assertEqual(self.careless.get("/sum/").status_code, 200)
            self.assertEqual(self.careless.get("/sum-on-commit/").status_code, 200)
        self.assertEqual(names(), ["add", "add"])

    def test_an_order_and_its_job_are_stored_together_or_not_at_all(self) -> None:
        self.assertEqual(self.careless.get("/order/?fail").status_code, 500)
        self.assertEqual((Order.objects.count(), names()), (0, []))
        self.assertEqual(self.careless.get("/order/").status_code, 200)
        self.assertEqual((Order.objects.count(), names()), (1, ["confirm"]))

    def test_threads_enqueue(self) -> None:
        def in_a_thread(number: int) -> str:
            try:
                return str(add.enqueue(number, number).id)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(4) as pool:
            ids = list(pool.map(in_a_thread, range(40)))
        self.assertEqual(len(set(ids)), 40)
        self.assertEqual(names(), ["add"] * 40)

    def test_a_task_that_waits_for_the_commit_is_dropped_with_the_rollback(self) -> None:
        with transaction.atomic():
            kept = ship.enqueue(1)
            with self.assertRaises(RuntimeError), transaction.atomic():
                ship.enqueue(2)
                raise RuntimeError("on purpose")
        self.assertEqual(waiting(), [("ship", [1])])
        self.assertEqual(ship.get_result(kept.id).args, [1])


def under(backend: str) -> Any:
    return override_settings(TASKS={"default": {"BACKEND": f"{BACKENDS}.{backend}"}})


class OtherBackends(TestCase):
    """Tasks were decorated while ``TASKS`` named Steady Queue; a test may name another backend."""

    @under("immediate.ImmediateBackend")
    def test_tasks_run_at_once(self) -> None:
        self.assertEqual(add.enqueue(1, 2).return_value, 3)
        order = Order.objects.create(customer=Customer.objects.create_user("ada"))
        order.refresh_from_db()
        self.assertIsNotNone(order.confirmed_at)
        self.assertEqual(self.client.get("/sum/").status_code, 200)
        self.assertFalse(Job.objects.exists())

    @under("immediate.ImmediateBackend")
    async def test_coroutine_tasks_run_at_once(self) -> None:
        response = await self.async_client.get("/sum-later/")
        self.assertEqual(response.status_code, 200)

    @under("dummy.DummyBackend")
    def test_tasks_are_kept(self) -> None:
        confirm.enqueue(1)
        self.client.get("/sum/")
        results = task_backends["default"].results
        self.assertEqual([result.task.name for result in results], ["confirm", "add"])
        self.assertFalse(Job.objects.exists())

    def test_afterwards_jobs_are_stored_again(self) -> None:
        with under("dummy.DummyBackend"):
            add.enqueue(1, 2)
        add.enqueue(3, 4)
        self.assertEqual(waiting(), [("add", [3, 4])])


@override_settings(USE_TZ=False, TIME_ZONE="Asia/Kathmandu")
class WithoutTimeZones(TestCase):
    def test_times_are_local(self) -> None:
        now = datetime.now()
        found = add.get_result(add.enqueue(1, 2).id)
        self.assertIsNone(found.enqueued_at.tzinfo)
        self.assertLess(abs(found.enqueued_at - now), timedelta(seconds=10))
        due = now + timedelta(hours=1)
        found = add.get_result(add.using(run_after=due).enqueue(1, 2).id)
        self.assertEqual(found.task.run_after, due)
        self.assertEqual(names(), ["add"])
