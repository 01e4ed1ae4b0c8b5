"""The supervisor's work in one database: its heartbeat, and the rescue of dead processes' jobs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock

from ...configuration import ResolvedOptions
from ...dialects import ClaimedJob
from ...internal_errors import log_internal_error
from ...logging import about, get_logger, process_name
from ...models.process import Process
from ...models.readiness import require_tables
from ...project_code import contained
from ...statistics.collector import Collector
from ..base.database import QueueDatabase, Unavailable
from ..base.journal_reader import JournalSnapshot, read_journal, remove_journal
from ..base.lifecycle import Lifecycle
from ..base.outage import MAX_PAUSE
from ..base.registration import ProcessLocation, ProcessRegistration, new_name
from ..base.response_timeout import ResponseTimeouts
from ..base.stats_flush import store_statistics
from ..base.steady_clock import FreezeWatch
from ..base.system import MemoryKills
from ..scheduler import mirror
from .deferred_work import DeferredWork
from .drain import Drain
from .ends import Reason
from .herald import Herald
from .managed_process import ManagedProcess
from .managed_processes import ManagedProcesses
from .pruning import Pruner
from .recovery import Rescuer
from .stateless_sweep import StatelessSweep

logger = get_logger("steady_queue.supervisor")

#: Seconds between two checks for processes of this host that died with their supervisor.
EXITED_CHECK_INTERVAL = 3.0
#: Seconds, after an outage, for all processes to send a heartbeat before one may count as dead.
HEARTBEAT_GRACE = 2 * MAX_PAUSE
#: Seconds until dead processes are looked for again after the rows of one were locked.
LOCKED_PAUSE = 10.0
#: Seconds until a step that failed, because of the contents of a row, is retried.
FAILURE_PAUSE = 5.0


class Maintenance:
    """Runs one step at a time, in a thread of its own. No outage and no row can end it.

    The supervisor's main thread reports children that have ended (``child_ended``), and acts on the
    findings about the others; it signals and starts them, and never waits for the database.
    """

    kind = "supervisor"

    def __init__(
        self,
        options: ResolvedOptions,
        using: str,
        children: ManagedProcesses,
        name: str,
        drain: Drain | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.options, self.children, self.drain = options, children, drain
        self.database = QueueDatabase(
            using, quiet=options.silence_polling, timeouts=ResponseTimeouts(options)
        )
        self.statistics = Collector() if options.statistics else None
        self.herald = Herald(wake)
        self.rescuer = Rescuer(self.database, self._note_lost, self.herald.tell)
        self.pruner = Pruner(self.database, self.rescuer, options.process_alive_threshold)
        self.sweep = StatelessSweep(self.database, self.rescuer)
        self.mirroring = mirror.Mirroring(self.database)
        self.deferred = DeferredWork()
        self.memory_kills = MemoryKills()
        self.name = name
        self.lifecycle = Lifecycle(self.kind, self.name, using)
        self._registration: ProcessRegistration | None = None
        self._next_exited_check = self._next_prune = 0.0
        self._freeze_watch = FreezeWatch(options)
        #: Held while a child moves from the living ones to the deferred rescue of its claims.
        self.handover_lock = Lock()
        #: Names of children that others have declared dead.
        self.declared_dead: deque[str] = deque()
        #: Whether a query waited for a lock in vain; a replaced child may hold it.
        self.lock_timed_out = False
        #: Whether nothing was left to run at the last look; ``None``: nobody has looked.
        self.drained: bool | None = None

    def set_process_name(self) -> None:
        """Set our name in the calling thread's log records."""
        process_name.set(self.name if self._registration else None)

    def register(self) -> None:
        """Register. Raises ``Unavailable``, ``MigrationsMissing`` and ``DialectError``."""
        self.database.run(lambda connection, _: require_tables(connection))
        process_name.set(self.name)
        self.pruner.read_clock()
        registration = self._new_registration()
        registration.register()
        self._registration = registration
        # The database may have been unavailable until just now.
        self._postpone_pruning()

    def resume(self, name: str, process_id: int, rescued: Iterable[int]) -> None:
        """Go on in the place of the former code in this process, which had that row."""
        self.name = self.lifecycle.name = name
        self.rescuer.rescued.extend(rescued)
        self._registration = self._new_registration()
        self._registration.resume(process_id)
        self._postpone_pruning()

    def _new_registration(self) -> ProcessRegistration:
        return ProcessRegistration(
            self.database,
            kind=self.kind,
            name=self.name,
            supervisor_id=None,
            interval=self.options.process_heartbeat_interval,
            threshold=self.options.process_alive_threshold,
            metadata={},
        )

    def finish(self) -> None:
        """Do the deferred work and deregister, if the database is available."""
        self.deferred.run(now=True)
        store_statistics(self.statistics, self.database, at_once=not self.deferred)
        registration, self._registration = self._registration, None
        if self.deferred:
            logger.warning(
                "The database is unavailable: the next supervisor will recover the claims",
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
        """Rescue the claims of a child as soon as possible; return its journal."""
        child.log_end(how)
        snapshot = child.journal.snapshot()
        error = child.lost_error(how)
        reason = Reason.of_child(child, how, memory_is_short=self.memory_kills.are_recent)

        def rescue() -> None:
            self.rescuer.rescue_process(child.name, snapshot, error, reason)
            remove_journal(child.journal.path)

        self.deferred.add(rescue, child.name)
        return snapshot

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do that nobody else can."""
        return bool(self.deferred) or self.herald.is_getting_on

    def _note_lost(self, claim: ClaimedJob) -> None:
        if self.statistics is not None:
            self.statistics.add_lost(claim, time.time())

    def mirror_schedules(self) -> None:
        """Copy the recurring tasks from the code to their table as soon as possible."""
        self.deferred.add(self.mirroring.begin)
        if not self.options.scheduler.dynamic_tasks_enabled:
            self.deferred.add(lambda: self.database.run(mirror.warn_of_unscheduled))

    def step(self) -> None:
        """Do what is due: deferred work, the heartbeat, and the checks for dead processes."""
        self.memory_kills.look()
        self.deferred.run()
        if self.deferred and not self.deferred.is_blocked:
            return
        # Also while some of it waits for a lock: others are not to wait for that.
        self._clock_is_steady()
        parts: list[Callable[[], object]] = [self._beat, self._check_exited, self._check_expired]
        parts += [partial(store_statistics, self.statistics, self.database), self.sweep.step]
        parts += [self.mirroring.step, self._look_whether_drained]
        try:
            for part in parts:
                self._do(part)
        except Unavailable as unavailable:
            self.lock_timed_out = not unavailable.lost
            if unavailable.pause:  # Otherwise there is another connection, and was no outage.
                self._postpone_pruning(unavailable.pause)

    def _do(self, part: Callable[[], object]) -> None:
        """Do one part of a step: the others do not depend on it. Raises ``Unavailable``."""
        try:
            contained(part)
        except Unavailable:
            raise
        except Exception:
            log_internal_error(
                logger,
                "The maintenance of the processes failed; retrying",
                extra=about("supervisor.round_failed"),
            )
            self._next_exited_check = self._next_prune = time.monotonic() + FAILURE_PAUSE

    def _check_exited(self) -> None:
        if time.monotonic() >= self._next_exited_check:
            self._next_exited_check = time.monotonic() + EXITED_CHECK_INTERVAL
            self._prune_exited()

    def _check_expired(self) -> None:
        now = time.monotonic()
        if self._clock_is_steady() and now >= self._next_prune:
            self._beat()  # The check before may have waited for locks.
            self._next_prune = now + self.pruner.interval
            self._prune_expired()

    def _look_whether_drained(self) -> None:
        if self.drain is not None:
            self.drained = self.drain.is_done(self.database, self.options)

    def _beat(self) -> None:
        if self._registration is not None and not self._registration.beat_if_due():
            logger.warning(
                "%s was declared dead; it registers again",
                self.name,
                extra=about("process.declared_dead"),
            )
            self.name = new_name(self.kind)
            self.register()
        if self.pruner.clock.is_unread:  # Another one has registered us.
            self.pruner.read_clock()

    def _prune_exited(self) -> None:
        """Rescue processes that died with their supervisor; find children that others declared
        dead."""
        with self.handover_lock:
            own = list(self.children)
            # The journals of these children say more than their rows.
            rescued = self.deferred.processes
        ready = {child.name for child in own if child.ready_at is not None and child.spec.registers}
        spared = {child.name for child in own} | rescued | {self.name}
        registered = self.pruner.prune_exited(spared)
        if self.pruner.exited:
            self._next_exited_check = self._note_lock() + LOCKED_PAUSE
        self.declared_dead.extend(ready - registered)

    def _prune_expired(self) -> None:
        """Prune processes without a heartbeat; of our own children, only replaced ones."""
        spared = {child.name for child in self.children if child.kill_at is None}
        spared |= self.deferred.processes
        expired = self.pruner.expired()
        others = [
            process
            for process in expired.processes
            if process.name != self.name and process.name not in spared
        ]
        if self._clock_is_steady():
            own = {child.name for child in self.children}
            self.pruner.prune(expired._replace(processes=others), self._snapshot_of, own)
            if self.pruner.silent:
                self._next_prune = self._note_lock() + min(self.pruner.interval, LOCKED_PAUSE)

    def _note_lock(self) -> float:
        """Note that a rescue has waited for a lock in vain, which is no freeze; return the time."""
        self.lock_timed_out = True
        self._freeze_watch.reset()
        return time.monotonic()

    def _clock_is_steady(self) -> bool:
        """Return whether neither we nor the database were frozen since the last call, for so long
        that processes with timely heartbeats would look dead; if we were, postpone pruning."""
        if not self._freeze_watch.has_frozen():
            return True
        self._postpone_pruning()
        return False

    def _postpone_pruning(self, pause: float = 0.0) -> None:
        """Give all processes time for a heartbeat before the next check for dead ones."""
        self._next_prune = time.monotonic() + pause + HEARTBEAT_GRACE

    def _snapshot_of(self, process: Process) -> JournalSnapshot | None:
        own = [child for child in self.children if child.name == process.name]
        if own:
            return own[0].journal.snapshot()
        return read_journal(ProcessLocation.of(process).journal)
