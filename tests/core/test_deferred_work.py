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
    assert (work.done, work.deferred.is_blocked) == (["first"], False)
    work.failures.clear()
    work.deferred.run()
    assert work.done == ["first"]  # The pause is not over.
    work.deferred.run(now=True)
    assert work.done == ["first", "second", "third"]


def test_what_waits_for_a_lock_holds_up_nothing_else() -> None:
    locked = Unavailable(0.0, lost=False)
    work = Work(first=locked, second=locked)
    work.deferred.run()
    assert (work.done, work.deferred.is_blocked) == (["third"], True)
    del work.failures["second"]
    work.deferred.run()
    assert work.done == ["third", "second"]
    work.failures.clear()
    work.deferred.run()
    assert (work.done, work.deferred.is_blocked) == (["third", "second", "first"], False)
    assert not work.deferred


def test_what_is_held_up_for_a_while_holds_up_nothing_that_comes_meanwhile() -> None:
    for refused in (False, True):
        held_up = Unavailable(60.0, lost=refused, refused=refused)
        work = Work(first=held_up)
        work.deferred.run()
        assert (work.done, work.deferred.is_blocked) == (["second", "third"], True)
        work.failures.clear()
        work.deferred.add(work.piece("fourth"), "worker-4")
        assert work.deferred.processes == {"", "worker-4"}
        assert not work.deferred.is_blocked
        work.deferred.run()
        assert (work.done[2:], work.deferred.is_blocked) == (["fourth"], True)
        work.deferred.run(now=True)
        assert (work.done[3:], bool(work.deferred)) == (["first"], False)
