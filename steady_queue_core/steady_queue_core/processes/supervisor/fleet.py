"""Fleet: the processes that serve one database, and what their supervisor does for them there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from ...configuration import ResolvedOptions
from ...logging import about, get_logger
from ..base.connection_setup import preparing_connections
from .drain import Drain
from .handover import PassedFleet, passed
from .maintenance import Maintenance
from .maintenance_thread import MaintenanceThread
from .managed_process import Launcher, ManagedProcess, ProcessSpec
from .managed_processes import ManagedProcesses
from .retiring import RetiringProcesses
from .topology import WorkerCount, banner_lines

logger = get_logger("steady_queue.supervisor")


class Fleet:
    """Its children start once the supervisor has registered in their database. An outage of that
    concerns no other fleet."""

    def __init__(
        self,
        options: ResolvedOptions,
        using: str,
        specs: Iterable[ProcessSpec],
        *,
        name: str,
        launcher: Launcher,
        drain: Drain | None,
        tick: float,
        wake: Callable[[], None],
    ) -> None:
        """``name``: of the supervisor; ``wake``: called when the maintenance has found something;
        ``tick``: seconds between its rounds."""
        self.options, self.using, self.specs = options, using, list(specs)
        self.children = ManagedProcesses(options, using, launcher)
        self.workers = WorkerCount(self.specs)
        self.retiring = RetiringProcesses(self.children, options.drain_timeout)
        self.maintenance = Maintenance(options, using, self.children, name, drain, wake)
        self.children.tell = self.maintenance.herald.tell
        self.thread = MaintenanceThread(self.maintenance, tick, wake)
        #: Whether its children have been started, or adopted.
        self.has_begun = False
        #: Settings that the dialect changed when the first connection was opened.
        self._changes: list[str] = []

    @property
    def is_registered(self) -> bool:
        """Whether the supervisor has a row in this database."""
        return self.maintenance.process_id is not None

    @property
    def is_drained(self) -> bool | None:
        """Whether nothing was left to run when the maintenance last looked; ``None``: it has not
        looked."""
        return self.maintenance.drained if self.children else None

    @property
    def in_place(self) -> int:
        """How many children do their work."""
        return sum(child.is_in_place for child in self.children)

    def preparing(self, *, all_threads: bool) -> AbstractContextManager[None]:
        """Prepare the connections to the database inside the block."""
        return preparing_connections(self.using, self._note_changes, all_threads=all_threads)

    def _note_changes(self, changes: list[str]) -> None:
        # The first connection finds most to change; later ones find it changed.
        self._changes = self._changes or changes

    def adopt(self, former: PassedFleet) -> None:
        """Go on with what the former code in this process had. Raises ``OSError``."""
        for child in former.children:
            self.children.adopt(child.adopt())
        # Only now: what it does not know of may be taken for dead.
        self.maintenance.resume(former.name, former.process_id, former.rescued)

    def passed(self) -> PassedFleet:
        """Return what new code has to know; the maintenance rests. Raises ``OSError``."""
        assert self.maintenance.process_id is not None
        return PassedFleet(
            using=self.using,
            name=self.maintenance.name,
            process_id=self.maintenance.process_id,
            children=passed(self.children),
            rescued=list(self.maintenance.rescuer.rescued),
        )

    def begin(self, *, scheduling: bool) -> list[str]:
        """Start the children; return lines about them."""
        self.has_begun = True
        self.maintenance.set_process_name()
        self.maintenance.lifecycle.started({})
        if scheduling:
            # Even without a scheduler, since the code may have had schedules before.
            self.maintenance.mirror_schedules()
        for spec in self.specs:
            self.children.restarts.plan_first(spec)
        dialect = self.maintenance.database.dialect.info
        return list(banner_lines(self.using, dialect, self._changes, self.specs))

    def start_due(self) -> None:
        """Start the children that are due. No maintenance may run, if they are forked."""
        due = self.children.restarts.take_due()
        for planned in due:
            self.children.start_planned(planned, self.maintenance.process_id)
        if due:
            self.maintenance.drained = None

    def raise_failure(self) -> None:
        """Raise what has ended the maintenance, if anything has."""
        if self.thread.failure is not None:
            raise self.thread.failure

    def look_after(self) -> None:
        """Replace the children that hang or were declared dead, and let the retiring ones go."""
        self.raise_failure()
        while self.maintenance.declared_dead:
            child = self.children.named(self.maintenance.declared_dead.popleft())
            if child is not None:
                self.children.replace(child)
        if self.maintenance.lock_timed_out:
            self.maintenance.lock_timed_out = False
            self.children.kill_replaced()
        self.children.check_health()
        if self.retiring.look_after(self.specs) and self.retiring:
            logger.info(
                "All processes are in place; %d others end when their tasks have",
                len(self.retiring),
                extra=about("supervisor.succeeded", processes=len(self.retiring)),
            )

    def note_end(self, child: ManagedProcess, how: str, *, replacing: bool) -> None:
        """Take a child from the living, have its claims rescued and, unless the supervisor is not
        ``replacing`` any more, plan its replacement."""
        with self.maintenance.handover_lock:
            self.children.remove(child)
            snapshot = self.maintenance.child_ended(child, how)
            self.thread.call()
            is_replaced = child.kill_at is not None or child.is_succeeded or child.is_retiring
            if replacing and not is_replaced:
                at_work = bool(snapshot.running or snapshot.stuck)
                self.children.restarts.plan(child, at_work=at_work)
