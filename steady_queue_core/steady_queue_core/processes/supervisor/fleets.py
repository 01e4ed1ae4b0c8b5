"""The fleets of one supervisor, taken together."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from .fleet import Fleet
from .handover import Handover
from .managed_process import ManagedProcess

#: How often all of several databases have to be empty, one look after the other.
DRAIN_ROUNDS = 3


class Fleets(list[Fleet]):
    """One for each database that the supervisor serves."""

    def __init__(self, fleets: Iterable[Fleet]) -> None:
        super().__init__(fleets)
        #: How often all databases were found drained.
        self._drained_rounds = 0

    @property
    def children(self) -> list[ManagedProcess]:
        """The children of all fleets."""
        return [child for fleet in self for child in fleet.children]

    @property
    def have_begun(self) -> bool:
        """Whether the children of any have been started, or adopted."""
        return any(fleet.has_begun for fleet in self)

    @property
    def are_registered(self) -> bool:
        """Whether the supervisor has a row in any database. Raises what has ended a thread."""
        for fleet in self:
            fleet.raise_failure()
        return any(fleet.is_registered for fleet in self)

    @property
    def wanted(self) -> int:
        """How many children are to be in place."""
        # A database that has been away from the start must not keep the others from being ready.
        begun = [fleet for fleet in self if fleet.has_begun] or self
        return sum(len(fleet.specs) for fleet in begun)

    @property
    def in_place(self) -> int:
        """How many children do their work."""
        return sum(fleet.in_place for fleet in self)

    @property
    def retiring(self) -> int:
        """How many children are to have no successor."""
        return sum(len(fleet.retiring) for fleet in self)

    @property
    def next_start(self) -> float:
        """Seconds until the next child is to be started."""
        return min(fleet.children.restarts.pause for fleet in self)

    def adopt(self, former: Handover) -> None:
        """Go on with what the former code in this process had. Raises ``OSError``."""
        fleets = {fleet.using: fleet for fleet in self}
        for each in former.fleets:
            fleets[each.using].adopt(each)
        self.start_maintenance()

    def announce_end(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Send the signals of the supervisor's end; may be pushed on an ``ExitStack``."""
        for fleet in self:
            fleet.maintenance.lifecycle.stopped(error)

    def set_process_name(self) -> None:
        """Have the calling thread's log records name us as we are registered."""
        for fleet in self:
            if fleet.is_registered:
                fleet.maintenance.set_process_name()
                return

    def note_end(self, child: ManagedProcess, how: str, *, replacing: bool) -> None:
        """Let the fleet of a child know that it has ended."""
        for fleet in self:
            if fleet.children.named(child.name) is child:
                fleet.note_end(child, how, replacing=replacing)

    def look_whether_drained(self) -> bool:
        """Whether nothing is left to run in any of the databases."""
        found = [fleet.is_drained for fleet in self]
        if False in found:
            self._drained_rounds = 0
        elif None not in found:
            self._drained_rounds += 1
            for fleet in self:
                fleet.maintenance.drained = None
        # A task of one database may have enqueued to another that was looked at before.
        return self._drained_rounds >= (1 if len(found) == 1 else DRAIN_ROUNDS)

    def start_maintenance(self) -> None:
        """Start the maintenance, or have it go on after a pause."""
        for fleet in self:
            fleet.thread.start()
            fleet.maintenance.herald.start()

    def pause_maintenance(self) -> bool:
        """Ask the maintenance to rest; return whether it does, and whether no thread is in the way
        of a fork. May be repeated."""
        threads = [each.thread for each in self]
        heralds = [each.maintenance.herald for each in self]
        for herald in heralds:
            herald.ask_to_pause()
        with ExitStack() as held:
            for each in threads:
                held.enter_context(each.lock)
            late = [each for each in threads if each.is_late]
            for each in late or threads:
                each.ask_to_pause()
        for each in late:
            each.was_late = True
        if late:
            # Until these have ended, which takes seconds, the others go on with their heartbeats.
            for each in threads:
                if not each.was_late:
                    each.start()
            return False
        rests = [each.has_paused for each in threads] + [each.has_paused for each in heralds]
        return all(rests)
