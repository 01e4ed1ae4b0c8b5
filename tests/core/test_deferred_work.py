"""Work of a supervisor that waits until the database is available."""

from __future__ import annotations

from collections.abc import Callable

from steady_queue_core.processes.base.database import Unavailable
from steady_queue_core.processes.supervisor.deferred_work import DeferredWork


class Work:
    """Three pieces of work, of which some fail."""

    def __init__(self, **failures: Exception) -> None:
        self.failures, self.done = failures, []
        self.deferred = DeferredWork()
        for name in ("first", "second", "third"):
            self.deferred.add(self.piece(name))

    done: list[str]

    def piece(self, name: str) -> Callable[[], None]:
        def run() -> None:
            if name in self.failures:
                raise self.failures[name]
            self.done.append(name)

        return run


def test_it_is_done_in_order_and_what_fails_is_dropped() -> None:
    work = Work(second=RuntimeError("broken"))
    work.deferred.run()
    assert work.done == ["first", "third"]
    assert not work.deferred


def test_without_a_database_all_of_it_waits() -> None:
    work = Work(second=Unavailable(60.0, lost=True))
    work.deferred.run()
    assert (work.done, work.deferred.is_held_up) == (["first"], False)
    work.failures.clear()
    work.deferred.run()
    assert work.done == ["first"]  # The pause is not over.
    work.deferred.run(now=True)
    assert work.done == ["first", "second", "third"]


def test_what_waits_for_a_lock_holds_up_nothing_else() -> None:
    locked = Unavailable(0.0, lost=False)
    work = Work(first=locked, second=locked)
    work.deferred.run()
    assert (work.done, work.deferred.is_held_up) == (["third"], True)
    del work.failures["second"]
    work.deferred.run()
    assert work.done == ["third", "second"]
    work.failures.clear()
    work.deferred.run()
    assert (work.done, work.deferred.is_held_up) == (["third", "second", "first"], False)
    assert not work.deferred
