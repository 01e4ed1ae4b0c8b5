"""What an operator asks a running supervisor for, by signals: USR1, USR2, TTIN and TTOU."""

from __future__ import annotations

import os
from collections import deque

from ...logging import about, get_logger
from ..base.diagnosis import log_stacks, reopen_log_files
from ..base.posix_signals import FEWER, MORE, REOPEN, STACKS
from .managed_processes import ManagedProcesses
from .worker_count import WorkerCount

logger = get_logger("steady_queue.supervisor")

#: Most requests that wait to be heeded.
MOST_WAITING = 100


class OperatorRequests:
    """Requests that were noted by a signal handler, and are heeded by the main loop."""

    def __init__(self, children: ManagedProcesses, workers: WorkerCount) -> None:
        self.children, self.workers = children, workers
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
                self._resize(more=signum == MORE)

    def _reopen_logs(self) -> None:
        reopen_log_files()
        outgoing = sum(child.is_outgoing for child in self.children)
        logger.info(
            "Supervisor (pid %d): %d children, of which %d are to end",
            os.getpid(),
            len(self.children),
            outgoing,
            extra=about("process.status", kind="supervisor"),
        )
        for child in self.children:
            child.reopen_logs()

    def _log_stacks(self) -> None:
        log_stacks()
        for child in self.children:
            child.log_stacks()

    def _resize(self, *, more: bool) -> None:
        """Have one worker more, or one fewer."""
        spec = self.workers.add() if more else self.workers.remove()
        if spec is None:
            logger.warning(
                "There cannot be %s: there is %s worker to begin with",
                "more workers" if more else "fewer workers",
                "no" if more else "only one",
                extra=about("supervisor.not_resized"),
            )
            return
        logger.info(
            "One worker %s: %s",
            "more" if more else "fewer",
            spec.description,
            extra=about("supervisor.resized"),
        )
        if more:
            self.children.restarts.plan_first(spec)
        else:
            self.children.restarts.forget(spec)
            for child in self.children:
                child.is_outgoing = child.is_outgoing or child.spec is spec
