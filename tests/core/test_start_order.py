"""The order in which a job is started: a crash between two of the steps loses nothing."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from steady_queue_core.configuration import Configuration
from steady_queue_core.dialects import ClaimedJob, Ending
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.lanes import Lanes

NOW = datetime(2026, 1, 1, tzinfo=UTC)
#: Its metadata have it asked for each step.
CLAIM = ClaimedJob(
    job_id=7, token=3, queue_name="default", rank=0, task_path="shop.tasks.pay",
    backend_name="default", arguments="{}", attempts=0, max_attempts=1, enqueued_at=NOW,
    claimed_at=NOW, worker_ids=None, errors=None, started_at=None, metadata="{}",
)  # fmt: skip
#: Seconds that a test waits at most.
PATIENCE = 20.0


class Start:
    """Starts one job in a worker of stand-ins, and notes the steps."""

    def __init__(self, *, on_loop: bool, permits: bool = True, holds_lease: bool = True) -> None:
        self.steps: list[str] = []
        self.ended = threading.Event()
        self.permits, self.holds_lease = permits, holds_lease

        def pay() -> None: ...
        async def apay() -> None: ...

        self.task: Any = SimpleNamespace(func=apay if on_loop else pay)

    def note(self, step: str, answer: Any = None) -> Any:
        self.steps.append(step)
        return answer

    @property
    def lease(self) -> Any:
        start = self

        class Registration:
            @property
            def holds_lease(self) -> bool:
                start.note("lease")
                return start.holds_lease

        return Registration()

    def run(self, claim: ClaimedJob, task: Any, attempt: Any = None) -> RunResult:
        self.note("run")
        return RunResult(outcomes.released(claim)._replace(ending=Ending.FINISHED))

    async def arun(self, claim: ClaimedJob, task: Any, attempt: Any = None) -> RunResult:
        return self.run(claim, task)

    def outcome(self) -> Ending:
        executor: Any = SimpleNamespace(
            run=self.run,
            arun=self.arun,
            breaking_off=False,
            refusal_of=lambda claim: self.note("refusal"),
            time_limit=lambda claim, task: None,
            tidy=lambda: None,
        )
        journal = SimpleNamespace(
            start=lambda *_: self.note("mark"),
            clear=lambda *_: self.note("unmark"),
            end=lambda outcome: self.note("end"),
        )
        waiter = SimpleNamespace(sleeping=True, wake=self.ended.set)
        context: Any = SimpleNamespace(journal=journal, waiter=waiter)
        gate: Any = SimpleNamespace(
            asks_for=lambda claim: False,
            may_start=lambda claim: self.note("permission", self.permits),
        )
        settings = Configuration.Worker(threads=1, coroutines=1)
        lanes = Lanes(context, settings, executor, gate=gate)
        lanes.registration = self.lease
        try:
            lanes.submit([(CLAIM, self.task)])
            assert self.ended.wait(PATIENCE)
            [result] = lanes.collect(1)
        finally:
            lanes.close()
        return result.outcome.ending


@pytest.mark.parametrize("on_loop", [False, True])
def test_a_job_is_refused_permitted_and_marked_before_the_last_look_at_the_lease(
    on_loop: bool,
) -> None:
    start = Start(on_loop=on_loop)
    assert start.outcome() is Ending.FINISHED
    assert start.steps == ["refusal", "permission", "mark", "lease", "run", "end"]


@pytest.mark.parametrize("on_loop", [False, True])
def test_a_job_that_may_not_start_is_never_marked(on_loop: bool) -> None:
    start = Start(on_loop=on_loop, permits=False)
    assert start.outcome() is Ending.RELEASED
    assert start.steps == ["refusal", "permission", "end"]


@pytest.mark.parametrize("on_loop", [False, True])
def test_a_mark_without_a_lease_is_taken_back(on_loop: bool) -> None:
    start = Start(on_loop=on_loop, holds_lease=False)
    assert start.outcome() is Ending.RELEASED
    assert start.steps == ["refusal", "permission", "mark", "lease", "unmark", "end"]
