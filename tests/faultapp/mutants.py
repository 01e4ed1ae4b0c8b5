"""Mutants of the product, each without one of its guards, to prove that the tests would notice.

``STEADY_QUEUE_MUTANT`` names, separated by commas, the mutants for the processes of a project.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..faults.app import mutants as of_faults
from ..faults.app.mutants import replace


def install() -> None:
    """Remove the guards that the environment names, if any."""
    for name in filter(None, os.environ.get("STEADY_QUEUE_MUTANT", "").split(",")):
        MUTANTS[name]()


def _no_start_marks() -> None:
    """Dead workers seem to have started nothing: their running jobs are run again."""
    from steady_queue_core.processes.base.journal import RunJournal

    replace(RunJournal, "start", lambda self, job_id, token, ends_at=None: None)


def _every_claim_started() -> None:
    """Dead workers seem to have started all of their claimed jobs."""
    from steady_queue_core.processes.supervisor.recovery import Rescuer

    original = Rescuer.rescue_process

    def rescue_process(
        self: Rescuer, name: str, started: Any, error: Any, reason: Any = None
    ) -> None:
        original(self, name, None, error, reason)

    replace(Rescuer, "rescue_process", rescue_process)


def _no_token_check() -> None:
    """Outcomes are accepted even if the claim belongs to another worker by now."""
    from steady_queue_core.models import ClaimedExecution
    from steady_queue_sqlite import settle as module

    original = module._settle

    def settle(cursor: Any, outcomes: Any) -> set[int]:
        ids = [outcome.job_id for outcome in outcomes]
        rows = ClaimedExecution.objects.filter(pk__in=ids)
        tokens = dict(rows.values_list("pk", "token"))
        adopted = [
            outcome._replace(token=tokens.get(outcome.job_id, outcome.token))
            for outcome in outcomes
        ]
        return original(cursor, adopted)

    module._settle = settle


def _no_lease_check() -> None:
    """A worker that was suspended goes on with its former claims."""
    from steady_queue_core.processes.base.registration import ProcessRegistration

    replace(ProcessRegistration, "holds_lease", property(lambda self: True))


def _no_giving_back() -> None:
    """Jobs wait for room in the worker that has claimed them, even if it is about to end."""
    from steady_queue_core.processes.worker import event_loop, lane, thread_pool

    lane.STALL = float("inf")
    replace(event_loop.EventLoop, "withdraw", lambda self: [])
    replace(thread_pool.ThreadPool, "withdraw", lambda self: [])


def _no_parent_watch() -> None:
    """Processes do not notice that their supervisor has died."""
    from steady_queue_core.processes.base import system
    from steady_queue_core.processes.supervisor.forked_context import ForkedContext

    replace(system, "signal_on_parent_death", lambda parent, signum=0: True)
    replace(ForkedContext, "orphaned", property(lambda self: False))


def _no_waiting_in_chains() -> None:
    """Jobs that follow others are started beside them."""
    from steady_queue_core.processes.worker.lanes import Lanes

    replace(Lanes, "follow", lambda self, work, since: self.submit(work))


def _no_heirs() -> None:
    """The permit of a chain ends with its first job."""
    from steady_queue_core.processes.worker.held_jobs import Heirs

    replace(Heirs, "named", lambda self, outcomes, ended, held: outcomes)


def _no_deadlines_in_chains() -> None:
    """Jobs may follow others at any time, and those that wait are not given back meanwhile."""
    from steady_queue_core.processes.worker import followers, lane

    followers.PATIENCE = lane.STALL = float("inf")


def _no_fence_around_transactions() -> None:
    """A task's transaction is committed even if its claim is lost."""
    from steady_queue_core.processes.worker import task_transaction

    class Careless:
        def __init__(self, dialect: Any) -> None:
            self._dialect = dialect

        def __getattr__(self, name: str) -> Any:
            return getattr(self._dialect, name)

        def settle(self, connection: Any, outcomes: Any) -> set[int]:
            self._dialect.settle(connection, outcomes)
            return {outcome.job_id for outcome in outcomes}

    module: Any = task_transaction
    original = module.dialect_for
    replace(module, "dialect_for", lambda using: Careless(original(using)))


def _no_delivery_in_recovery() -> None:
    """A supervisor gives back what it believes not to have started."""
    from steady_queue_core.processes.supervisor import claim_results

    replace(claim_results, "may_repeat", lambda metadata: True)


def _no_heirs_for_transactions() -> None:
    """Jobs that are settled by their tasks take part in chains."""
    from steady_queue_core.processes.worker import intake, lanes

    for module in (lanes, intake):
        replace(module, "follows_in_chain", lambda claim: True)


def _no_blame_for_blocking() -> None:
    """Whichever coroutine is late is to blame for it."""
    from steady_queue_core.processes.worker.event_loop import EventLoop

    replace(EventLoop, "is_to_blame", lambda self, job_id: True)


def _no_look_at_waiting_threads() -> None:
    """Threads that wait for the interpreter are as guilty as the one that holds it."""
    from steady_queue_core.processes.supervisor import held_interpreters

    replace(held_interpreters, "_wakeups", lambda pid, limited: {})
    replace(held_interpreters, "waits_for_lock", lambda pid, thread: False)


def _no_end_to_time_outs() -> None:
    """An attempt that has ended is still told that its time is over."""
    from steady_queue_core.processes.worker.interruptions import Interruptions
    from steady_queue_core.processes.worker.time_outs import TimeOuts

    replace(TimeOuts, "end", lambda self, job_id: None)
    replace(Interruptions, "leave", lambda self, job_id: None)


def _no_fence_around_checkpoints() -> None:
    """Checkpoints and progress are stored for whoever says so."""
    from steady_queue_core.dialects import Dialect
    from steady_queue_core.dialects.portable.held_rows import upsert_held
    from steady_queue_core.tasks.claim_hold import ClaimHold

    def save(self: Any, connection: Any, change: Any) -> bool:
        with self.transaction(connection):
            upsert_held(connection, [change.row])
        return True

    replace(Dialect, "save_checkpoint", save)
    replace(ClaimHold, "require", lambda self: None)


def _no_fence_around_steps() -> None:
    """Steps are stored for whoever says so."""
    from steady_queue_core.dialects import Dialect
    from steady_queue_core.dialects.portable.held_rows import upsert_held
    from steady_queue_core.tasks.claim_hold import ClaimHold

    def save(self: Any, connection: Any, step: Any) -> bool:
        with self.transaction(connection):
            upsert_held(connection, [step.row])
        return True

    replace(Dialect, "save_step", save)
    replace(ClaimHold, "require", lambda self: None)


def _no_memory_of_steps() -> None:
    """Some steps are not stored, although the task goes on."""
    from steady_queue_core.dialects import Dialect

    original = Dialect.save_step

    def save(self: Dialect, connection: Any, step: Any) -> bool:
        return step.position % 4 == 2 or original(self, connection, step)

    replace(Dialect, "save_step", save)


def _hasty_sweep() -> None:
    """No guard is gone: a supervisor looks for jobs without a state all the time, at new ones too,
    and what it doubts it looks at again at once."""
    from datetime import timedelta

    from steady_queue_core.models.operations import stateless_jobs
    from steady_queue_core.processes.supervisor import stateless_sweep

    stateless_jobs.AGE = -timedelta(hours=1)
    stateless_sweep.PAUSE = stateless_sweep.REST = stateless_sweep.DOUBT = 0.0
    original = stateless_sweep.StatelessSweep.step

    def step(self: Any) -> None:
        for _ in range(20):
            original(self)

    stateless_sweep.StatelessSweep.step = step  # type: ignore[method-assign]  # mutant


def _careless_sweep() -> None:
    """The states of jobs are read one after the other, and nobody looks twice."""
    from steady_queue_core.models.operations.stateless_jobs import STATES, StatelessJobs

    _hasty_sweep()

    def judged(self: Any, job_ids: Any) -> list[int]:
        left = list(self.jobs.filter(pk__in=job_ids, finished_at=None).values_list("pk", flat=True))
        for model in reversed(STATES):
            rows = model.objects.using(self.using).filter(pk__in=left)
            found = set(rows.values_list("pk", flat=True))
            left = [pk for pk in left if pk not in found]
        return left

    original = StatelessJobs.take

    def take(self: Any, job_id: int) -> bool:
        self._judged = lambda job_ids: job_ids
        return original(self, job_id)

    replace(StatelessJobs, "_judged", judged)
    replace(StatelessJobs, "take", take)


MUTANTS: dict[str, Callable[[], None]] = {
    "no start marks": _no_start_marks,
    "every claim started": _every_claim_started,
    "no token check": _no_token_check,
    "no lease check": _no_lease_check,
    "no giving back": _no_giving_back,
    "no parent watch": _no_parent_watch,
    "no waiting in chains": _no_waiting_in_chains,
    "no heirs": _no_heirs,
    "no deadlines in chains": _no_deadlines_in_chains,
    "no fence around transactions": _no_fence_around_transactions,
    "no fence around checkpoints": _no_fence_around_checkpoints,
    "no fence around steps": _no_fence_around_steps,
    "no memory of steps": _no_memory_of_steps,
    "no delivery in recovery": _no_delivery_in_recovery,
    "no heirs for transactions": _no_heirs_for_transactions,
    "no blame for blocking": _no_blame_for_blocking,
    "no look at waiting threads": _no_look_at_waiting_threads,
    "no end to time-outs": _no_end_to_time_outs,
    "hasty sweep": _hasty_sweep,
    "careless sweep": _careless_sweep,
    **of_faults.MUTANTS,
}
