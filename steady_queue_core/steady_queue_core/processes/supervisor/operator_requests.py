"""What an operator asks a running supervisor for, by signals: USR1, USR2, TTIN and TTOU."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence

from ...logging import about, get_logger
from ..base.diagnosis import log_stacks, reopen_log_files
from ..base.posix_signals import FEWER, MORE, REOPEN, STACKS
from .fleet import Fleet
from .managed_process import ManagedProcess

logger = get_logger("steady_queue.supervisor")

#: Most requests that wait to be heeded.
MOST_WAITING = 100


class OperatorRequests:
    """Requests that were noted by a signal handler, and are heeded by the main loop."""

    def __init__(self, fleets: Sequence[Fleet]) -> None:
        self._fleets = fleets
        self._waiting: deque[int] = deque(maxlen=MOST_WAITING)

    def note(self, signum: int) -> bool:
        """Note a request; return whether the signal is one."""
        is_request = signum in (REOPEN, STACKS, MORE, FEWER)
        if is_request:
            self._waiting.append(signum)
        return is_request

    def heed(self, *, may_resize: bool = True) -> None:
        """Do what was asked for."""
        while self._waiting:
            signum = self._waiting.popleft()
            if signum == REOPEN:
                self._reopen_logs()
            elif signum == STACKS:
                self._log_stacks()
            elif may_resize:
                for fleet in self._fleets:
                    _resize(fleet, more=signum == MORE)

    @property
    def _children(self) -> list[ManagedProcess]:
        return [child for fleet in self._fleets for child in fleet.children]

    def _reopen_logs(self) -> None:
        reopen_log_files()
        children = self._children
        logger.info(
            "Supervisor (pid %d): %d children, of which %d are to end",
            os.getpid(),
            len(children),
            sum(child.is_retiring for child in children),
            extra=about("process.status", kind="supervisor"),
        )
        for child in children:
            child.reopen_logs()

    def _log_stacks(self) -> None:
        log_stacks()
        for child in self._children:
            child.log_stacks()


def _resize(fleet: Fleet, *, more: bool) -> None:
    """Have one worker more, or one fewer."""
    if not fleet.has_begun:
        return
    spec = fleet.workers.add() if more else fleet.workers.remove()
    if spec is None:
        logger.warning(
            "There cannot be %s on the database %r: there is %s worker to begin with",
            "more workers" if more else "fewer workers",
            fleet.using,
            "no" if more else "only one",
            extra=about("supervisor.not_resized", database=fleet.using),
        )
        return
    logger.info(
        "One worker %s on the database %r: %s",
        "more" if more else "fewer",
        fleet.using,
        spec.description,
        extra=about("supervisor.resized", database=fleet.using),
    )
    if more:
        fleet.children.restarts.plan_first(spec)
    else:
        fleet.children.restarts.forget(spec)
        for child in fleet.children:
            child.is_retiring = child.is_retiring or child.spec is spec
