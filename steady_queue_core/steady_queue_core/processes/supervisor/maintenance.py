"""A supervisor's part in the database: its heartbeat, and the claims of dead processes."""

from __future__ import annotations

import logging
import time
from collections import deque
from threading import Lock

from ...configuration import ResolvedOptions
from ...logging import about, get_logger, process_name
from ...models.process import Process
from ...models.readiness import require_tables
from ..base import journal_reader as remains
from ..base.answer_limits import Limits
from ..base.database import LONGEST_PAUSE, QueueDatabase, Unavailable
from ..base.identity import ProcessLocation
from ..base.journal_reader import JournalSnapshot
from ..base.lifecycle import Lifecycle
from ..base.registration import ProcessRegistration, new_name
from ..scheduler import mirror
from .child import ManagedProcess
from .children import ManagedProcesses
from .deferred_work import DeferredWork
from .drain import Drain
from .pruning import Pruner
from .recovery import Recovery

logger = get_logger("steady_queue.supervisor")

#: Seconds between two looks for processes of this host that died with their supervisor.
LOOK_INTERVAL = 3.0
#: Seconds, after an outage, for all processes to give a heartbeat before one may count as dead.
REUNION = 2 * LONGEST_PAUSE
#: Seconds between two signs that time goes on which are always taken for business as usual.
USUAL = 2.0
#: Seconds between two tries of what failed, for what a row holds.
FAILURE_PAUSE = 5.0


class Maintenance:
    """Done a step at a time, in a thread of its own. No outage and no row can end it.

    The supervisor's own thread says which children have ended (``child_ended``), and asks what was
    found out about the others; it signals and starts them, and never waits for the database.
    """

    kind = "supervisor"

    def __init__(
        self,
        options: ResolvedOptions,
        using: str,
        children: ManagedProcesses,
        drain: Drain | None = None,
    ) -> None:
        self.options, self.children, self.drain = options, children, drain
        self.database = QueueDatabase(using, silent=options.silence_polling, limits=Limits(options))
        self.recovery = Recovery(self.database)
        self.pruning = Pruner(self.database, self.recovery, options.process_alive_threshold)
        self.postponed = DeferredWork()
        self.name = new_name(self.kind)
        self.lifecycle = Lifecycle(self.kind, self.name, using)
        self._registration: ProcessRegistration | None = None
        self._next_look = self._next_prune = 0.0
        self._went_on_at = time.monotonic()
        #: Held while a child goes from the living to those whose claims are to be ended.
        self.handing_over = Lock()
        #: Names of children that others have declared dead.
        self.disowned: deque[str] = deque()
        #: Whether somebody holds a lock that we wait for: perhaps a child that we gave up on.
        self.locked_out = False
        #: Whether nothing was left to run when we last looked.
        self.drained = False

    def introduce(self) -> None:
        """Have what the calling thread logs name us."""
        process_name.set(self.name if self._registration else None)

    def join(self) -> None:
        """Register. Raises ``Unavailable``, ``MigrationsMissing`` and ``DialectError``."""
        self.database.run(require_tables)
        registration = ProcessRegistration(
            self.database,
            kind=self.kind,
            name=self.name,
            supervisor_id=None,
            interval=self.options.process_heartbeat_interval,
            threshold=self.options.process_alive_threshold,
            metadata={},
        )
        process_name.set(self.name)
        registration.register()
        self._registration = registration
        # The database may have been away until just now.
        self._let_all_meet()

    def leave(self) -> None:
        """Do what was postponed, if the database answers, and take our row away."""
        self.postponed.catch_up(now=True)
        registration, self._registration = self._registration, None
        if self.postponed:
            logger.warning(
                "The database is away: claims are recovered by the next supervisor",
                extra=about("supervisor.claims_left"),
            )
        elif registration is not None:
            try:
                registration.deregister()
            except Unavailable:
                logger.warning(
                    "%s could not deregister; it will be pruned",
                    self.name,
                    extra=about("process.not_deregistered"),
                )
        self.database.close()
        process_name.set(None)

    @property
    def process_id(self) -> int | None:
        """The id of our row."""
        return self._registration.process_id if self._registration else None

    def child_ended(self, child: ManagedProcess, how: str) -> JournalSnapshot:
        """End the claims of a child, now or when the database answers; return what it left."""
        level = logging.INFO if child.journal.left_cleanly else logging.WARNING
        logger.log(
            level,
            "%s (pid %d) %s",
            child.name,
            child.pid,
            how,
            extra=about(
                "process.ended",
                child=child.name,
                child_pid=child.pid,
                kind=child.spec.kind,
                exit_code=child.exit_code,
            ),
        )
        left = child.journal.remains()
        error = child.lost(how)

        def recover() -> None:
            self.recovery.process_died(child.name, left, error)
            remains.forget(child.journal.path)

        self.postponed.add(recover)
        return left

    def mirror_schedules(self) -> None:
        """Have the table of recurring tasks say what the code says, as soon as it can be done."""
        self.postponed.add(lambda: self.database.run(mirror.mirror))
        if not self.options.scheduler.dynamic_tasks_enabled:
            self.postponed.add(lambda: self.database.run(mirror.warn_of_unscheduled))

    def step(self) -> None:
        """Give a heartbeat, and look for the dead, as far as it is time for it."""
        self.postponed.catch_up()
        if self.postponed:
            return
        now = time.monotonic()
        try:
            self._time_went_on()
            self._beat()
            if now >= self._next_look:
                self._next_look = now + LOOK_INTERVAL
                self._look_for_dead()
            if self._time_went_on() and now >= self._next_prune:
                self._next_prune = now + self.pruning.interval
                self._prune()
            if self.drain is not None:
                self.drained = self.drain.is_done(self.database, self.options)
        except Unavailable as unavailable:
            self.locked_out = not unavailable.lost
            self._let_all_meet(unavailable.pause)
        except Exception:
            logger.exception(
                "Looking after the processes failed; it is tried again",
                extra=about("supervisor.round_failed"),
            )
            self._next_look = self._next_prune = now + FAILURE_PAUSE

    def _beat(self) -> None:
        if self._registration is not None and not self._registration.beat_if_due():
            logger.warning(
                "%s was declared dead; it registers anew",
                self.name,
                extra=about("process.declared_dead"),
            )
            self.name = new_name(self.kind)
            self.join()

    def _look_for_dead(self) -> None:
        """Recover what died with its supervisor; replace children that others declared dead."""
        with self.handing_over:
            if self.postponed:
                return  # Of those that are to be recovered more is known than their rows tell.
            own = list(self.children)
        ready = {child.name for child in own if child.ready_at is not None}
        registered = self.pruning.recover_dead({child.name for child in own} | {self.name})
        self.disowned.extend(ready - registered)

    def _prune(self) -> None:
        """End the claims of silent processes; of our children, of those that we gave up on."""
        spared = {child.name for child in self.children if child.condemned_until is None}
        silent = [
            process
            for process in self.pruning.silent()
            if process.name != self.name and process.name not in spared
        ]
        if self._time_went_on():
            self.pruning.prune(silent, self._left_by)

    def _time_went_on(self) -> bool:
        """Whether neither we nor the database have been frozen since the last call, for so long
        that processes which give their heartbeats in time would look silent."""
        options, now = self.options, time.monotonic()
        spare = options.process_alive_threshold - options.process_heartbeat_interval
        if now - self._went_on_at < max(USUAL, spare.total_seconds() / 2):
            self._went_on_at = now
            return True
        self._went_on_at = now
        self._let_all_meet()
        return False

    def _let_all_meet(self, pause: float = 0.0) -> None:
        """Have all processes say that they live, before we look again who does not."""
        self._next_prune = time.monotonic() + pause + REUNION

    def _left_by(self, process: Process) -> JournalSnapshot | None:
        own = [child for child in self.children if child.name == process.name]
        if own:
            return own[0].journal.remains()
        return remains.left_at(ProcessLocation.of(process).journal)
