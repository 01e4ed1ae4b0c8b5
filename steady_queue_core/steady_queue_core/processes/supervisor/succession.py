"""A supervisor gives its place to new code, and with it its children."""

from __future__ import annotations

from collections.abc import Callable

from ...logging import about, get_logger
from ..base.connection_setup import close_connections
from ..base.forking import accept_signals, flush_output, hold_signals
from .fleets import Fleets
from .handover import Handover
from .live_restart import LiveRestart
from .shutdown import StopRequest

logger = get_logger("steady_queue.supervisor")


class Succession:
    """Replaces this process once a live restart is due, at a moment at which that is possible."""

    def __init__(
        self,
        restart: LiveRestart,
        fleets: Fleets,
        stop: StopRequest,
        state: Callable[[], Handover],
        *,
        threads: bool,
    ) -> None:
        """``state()`` returns what the new code has to know, while the maintenance rests; with
        ``threads``, which cannot be passed on, it starts once they have ended."""
        self._restart, self._fleets, self._stop = restart, fleets, stop
        self._state, self._threads = state, threads
        restart.databases = [fleet.using for fleet in fleets]

    def advance(self) -> bool:
        """Do what is next in a live restart; return whether to go on without a pause."""
        restart = self._restart
        if restart.is_hung_up:
            self._stop.make()
            return True
        restart.advance()
        if not restart.is_due:
            return False
        if self._threads:
            self._stop.is_made = self._stop.is_for_restart = True  # Once the threads have ended.
        elif busy := [fleet for fleet in self._fleets if fleet.maintenance.is_busy]:
            for fleet in busy:
                fleet.thread.call()  # Only we know how these processes have ended.
                fleet.maintenance.herald.start()
        elif self._fleets.pause_maintenance():
            self._give_place()
            self._fleets.start_maintenance()
        return self._stop.is_made

    def _give_place(self) -> None:
        """Replace this process by the new code. Returns only if that fails, or must not be."""
        logger.info(
            "The new code takes over",
            extra=about("supervisor.restarting", processes=len(self._fleets.children)),
        )
        for fleet in self._fleets:
            fleet.maintenance.lifecycle.stopped()
        close_connections()
        flush_output()
        hold_signals()
        try:
            if not self._stop:
                self._state().execute(self._restart.invocation)
        except OSError as error:
            self._restart.give_up(error)
        accept_signals()
        for fleet in self._fleets:
            if fleet.has_begun:
                fleet.maintenance.lifecycle.started({})
