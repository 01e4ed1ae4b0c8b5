"""A worker in the calling thread, one step at a time."""

from __future__ import annotations

import os
from contextvars import copy_context

from asgiref.sync import async_to_sync
from django.db import connections

from steady_queue_core.compat import Task, TaskResult
from steady_queue_core.dialects import ClaimedJob, QueueSelector, dialect_for
from steady_queue_core.models import process as processes
from steady_queue_core.processes.base.database import DatabaseClock
from steady_queue_core.processes.base.registration import new_name
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.callbacks import with_callback
from steady_queue_core.processes.worker.executor import Executor, is_coroutine
from steady_queue_core.processes.worker.refusals import refusal_of
from steady_queue_core.processes.worker.signal_sender import send_signals

from ..positions import forget_positions


class Driver:
    """Claims, runs and settles jobs when told to, with the parts that a worker is made of.

    Running a job closes a connection that is inside ``atomic``: such tests need real transactions.
    """

    def __init__(self, using: str = "default") -> None:
        self.using = using
        self.name = new_name("worker")
        self.process = processes.register(
            using,
            kind="worker",
            name=self.name,
            pid=os.getpid(),
            hostname="here",
            supervisor_id=None,
            metadata="{}",
        )
        self.clock = DatabaseClock()
        self.dialect = dialect_for(using)
        self.executor = Executor(self.name, self.clock)

    def claim(self, *queues: str, limit: int = 100) -> list[ClaimedJob]:
        selector = QueueSelector(patterns=queues or ("*",))
        connection = connections[self.using]
        forget_positions(connection)
        claimed = dialect_for(self.using).claim(connection, self.process, selector, limit)
        if claimed:
            self.clock.set(claimed[0].claimed_at)
        return claimed

    def run(self, claim: ClaimedJob) -> RunResult:
        """Run a job, in a context of its own; its outcome is not stored yet."""
        result = self._run(claim)
        return result if result.settled is not None else with_callback(result, claim)

    def _run(self, claim: ClaimedJob) -> RunResult:
        if claim.is_cancelled:
            return self.executor.cancelled(claim)
        if (error := refusal_of(claim, claim.claimed_at)) is not None:
            return self.executor.refused(claim, error)
        task = self.executor.task_of(claim)
        run = async_to_sync(self._arun) if is_coroutine(task) else self.executor.run
        context = copy_context()
        result: RunResult = context.run(run, claim, task)
        context.run(self.executor.tidy)
        return result

    async def _arun(self, claim: ClaimedJob, task: Task) -> RunResult:
        result = await self.executor.arun(claim, task)
        await self.executor.atidy()
        return result

    def settle(self, done: RunResult) -> None:
        """Store an outcome, unless whoever ran the task has done so, and say so."""
        if done.settled is None:
            dialect = dialect_for(self.using)
            assert dialect.settle(connections[self.using], [done.outcome]) == {done.outcome.job_id}
        if done.settled is not False:
            send_signals(done)

    def dispatch(self) -> None:
        """Make the jobs ready that are due."""
        dialect_for(self.using).dispatch(connections[self.using], 500)

    def work(self) -> list[RunResult]:
        """Run everything that is ready, and what becomes ready by it."""
        outcomes: list[RunResult] = []
        while claimed := self.claim():
            for claim in claimed:
                outcomes.append(self.run(claim))
                self.settle(outcomes[-1])
        return outcomes

    def finish(self, result: TaskResult) -> TaskResult:
        """Run everything that is ready; return ``result`` with what became of it."""
        self.work()
        result.refresh()
        return result
