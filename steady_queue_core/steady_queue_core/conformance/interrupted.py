"""A life of jobs with faults between the statements that it takes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import timedelta
from functools import cached_property, partial
from itertools import count
from typing import TypeVar

from django.db.transaction import atomic

from ..dialects.queue_selector import QueueSelector
from .base import limited_job, new_job
from .contention import ContentionCase
from .faults import Fault, Intrusion, Refusal

T = TypeVar("T")

#: The queue of the jobs that others enqueue meanwhile.
OTHERS = "others"
#: Seconds for which somebody else may wait for our locks, before we go on.
LOCKED_OUT = 1.0


class InterruptedCase(ContentionCase):
    #: Whether the operations join a transaction of the caller, who repeats it.
    joins = False

    def abort(self, before: int) -> Fault:
        """Return a fault that ends the transaction before its statement number ``before``.

        May be overridden where a server does more than to answer that statement with an error. It
        may sit in a proxy, and count statements that Django sees as one.
        """
        return Refusal(self.connection, before, self.contention)

    def disturb(self, before: int) -> Fault:
        """Return a fault that enqueues another job before the statement number ``before``.

        May be overridden where more than that may come between, such as settings of a session that
        change.
        """
        return Intrusion(self.connection, before, self.enqueue_elsewhere)

    @cached_property
    def contention(self) -> BaseException:
        error = self.provoke_contention()
        for name in ("ReadyExecution", "Job"):
            self.rows(name).delete()
        return error

    def setUp(self) -> None:
        super().setUp()
        self._others: list[Future[list[int]]] = []

    def enqueue_elsewhere(self) -> None:
        # Where nobody else can write, nothing comes between.
        if self.dialect.info.skips_locked or not self.connection.in_atomic_block:
            self._others.append(self.begin(lambda: self.enqueue_many(1, OTHERS)))
            wait(self._others, timeout=LOCKED_OUT)

    # --- repeating an operation

    def everywhere(self, fault: Callable[[int], Fault], operation: Callable[[], object]) -> int:
        """Repeat ``operation`` with a fault before its first statement, its second, and so on;
        return how many it has."""
        self.worker = self.register()
        for before in count():
            self.fault = fault(before)
            operation()
            for other in self._others:
                other.result(timeout=self.patience)
            self.check_states()
            self.check_permits()
            if not self.fault.is_done:
                return before
        raise AssertionError("unreachable")

    def whole(self, operation: Callable[[], T]) -> T:
        """Run a part of what ``everywhere`` repeats, with the fault in it."""

        def run() -> T:
            if not self.joins:
                return operation()
            with atomic(using=self.using):
                return operation()

        with self.fault.played():
            return self.again(run)

    # --- operations

    def enqueue_of_each_kind(self) -> list[int]:
        hour = timedelta(hours=1)
        jobs = [
            new_job("a"), new_job("b"), limited_job(to=2, queue_name="c"),
            limited_job(to=2, queue_name="d"), new_job("e", delay=hour),
        ]  # fmt: skip
        before = self.rows("Job").exclude(queue_name=OTHERS).count()
        ids = self.whole(lambda: self.enqueue(*jobs))
        after = self.rows("Job").exclude(queue_name=OTHERS).count()
        self.assertEqual(after, before + len(jobs), "of five jobs, not five were stored")
        names = dict(self.rows("Job").values_list("pk", "queue_name"))
        self.assertEqual([names[job_id] for job_id in ids], list("abcde"))
        self.assertEqual(self.ids("Scheduled")[-1], ids[-1])
        return ids

    def none_is_scheduled(self) -> bool:
        """Whether nothing is scheduled, if need be after another dispatch."""
        if self.ids("Scheduled"):
            self.dialect.dispatch(self.connection, 10)
        return not self.ids("Scheduled")

    def live(self) -> None:
        """Enqueue jobs, make them due, claim and settle them: each is claimed once."""
        *_, later = self.enqueue_of_each_kind()
        self.make_due(later)
        self.whole(lambda: self.dialect.dispatch(self.connection, 10))
        if self.dialect.info.skips_locked:
            # What the fault has locked may be left for the next time.
            self.wait_until(self.none_is_scheduled, "the dispatch")
        self.assertEqual(self.ids("Scheduled"), [])
        process, selector = self.identity(self.worker), QueueSelector()
        claims = self.whole(lambda: self.claim(2, process_id=self.worker))
        claimed = [claim.job_id for claim in claims]
        while claims:
            outcomes = [self.finished(claim) for claim in claims]
            both = partial(
                self.dialect.settle_and_claim, self.connection, outcomes, process, selector, 2
            )
            held, claims = self.whole(both)
            self.assertEqual(held, {outcome.job_id for outcome in outcomes})
            claimed += [claim.job_id for claim in claims]
        self.assertEqual(len(claimed), 5)
        self.assertEqual(len(set(claimed)), 5)
        self.assertEqual(self.ids("Claimed"), [])
