"""Guards of the product, taken out one at a time, to prove that the tests would notice.

``STEADY_QUEUE_MUTANT`` names the guards, with commas between, that the processes of a project do
without.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def install() -> None:
    """Take out the guards that the environment names, if it names any."""
    for name in filter(None, os.environ.get("STEADY_QUEUE_MUTANT", "").split(",")):
        MUTANTS[name]()


def _no_start_marks() -> None:
    """Dead workers seem to have started nothing: what they ran is run again."""
    from steady_queue_core.processes.base.journal import RunJournal

    RunJournal.start = lambda self, job_id, token: None  # type: ignore[method-assign]


def _every_claim_started() -> None:
    """Dead workers seem to have started whatever they had claimed."""
    from steady_queue_core.processes.supervisor.recovery import Recovery

    original = Recovery.process_died

    def process_died(self: Recovery, name: str, started: Any, error: Any) -> None:
        original(self, name, None, error)

    Recovery.process_died = process_died  # type: ignore[method-assign]


def _no_token_check() -> None:
    """Whoever settles a claimed job is believed, though the claim be another one's."""
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
    """A worker that was asleep goes on with what it had claimed before."""
    from steady_queue_core.processes.base.registration import ProcessRegistration

    ProcessRegistration.holds_lease = property(lambda self: True)  # type: ignore[assignment]


def _no_giving_back() -> None:
    """Jobs wait for room in the worker that has claimed them, even when it is to end."""
    from steady_queue_core.processes.worker import event_loop
    from steady_queue_core.processes.worker import lane as place
    from steady_queue_core.processes.worker import thread_pool as pool

    place.STALL = float("inf")
    # The mutation itself: mypy is right that methods are not to be assigned.
    event_loop.EventLoop.withdraw = lambda self: []  # type: ignore[method-assign]
    pool.ThreadPool.withdraw = lambda self: []  # type: ignore[method-assign]


def _no_parent_watch() -> None:
    """Processes do not notice that their supervisor has died."""
    from steady_queue_core.processes.base import system as host
    from steady_queue_core.processes.supervisor.forks import ForkedContext

    host.follow_parent = lambda parent, signum=0: True
    ForkedContext.orphaned = property(lambda self: False)  # type: ignore[assignment]


MUTANTS: dict[str, Callable[[], None]] = {
    "no start marks": _no_start_marks,
    "every claim started": _every_claim_started,
    "no token check": _no_token_check,
    "no lease check": _no_lease_check,
    "no giving back": _no_giving_back,
    "no parent watch": _no_parent_watch,
}
