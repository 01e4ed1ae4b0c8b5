"""What every forked process has: its settings, database, membership, and the wish to stop."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from types import FrameType

from ..configuration import ResolvedOptions
from .database import QueueDatabase, Unavailable
from .marks import StartMarks
from .membership import Membership
from .signals import graceful_signals
from .waiter import Waiter

logger = logging.getLogger("steady_queue.process")

#: Seconds that a process whose supervisor died may take to end.
ORPHAN_GRACE = 3.0
#: Seconds between two rounds of which the first failed.
FAILURE_PAUSE = 5.0


@dataclass
class Runtime:
    """The surroundings of a worker, dispatcher or scheduler."""

    options: ResolvedOptions
    using: str
    name: str
    parent: int
    marks: StartMarks
    #: Tells the supervisor that the process lives, and, with an id, that it is ready.
    report: Callable[[int | None], None]
    supervisor_id: int | None = None
    waiter: Waiter = field(default_factory=Waiter)
    stop_requested: bool = False

    def __post_init__(self) -> None:
        self.database = QueueDatabase(self.using)
        self._next_sign = 0.0
        self._membership: Membership | None = None

    @property
    def stopping(self) -> bool:
        """Whether to take no more work: asked to stop, or orphaned."""
        return self.stop_requested or self.orphaned

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor is gone."""
        return os.getppid() != self.parent

    def sign_of_life(self) -> None:
        """Let the supervisor see, whatever the database does, that the main thread is at work."""
        if time.monotonic() >= self._next_sign:
            self._next_sign = time.monotonic() + self.sign_interval
            self.report(None)

    @property
    def sign_interval(self) -> float:
        """Seconds between two signs; the main thread sleeps no longer."""
        return min(1.0, self.options.process_heartbeat_interval.total_seconds())

    def sleep(self, seconds: float) -> bool:
        """Sleep at most ``seconds``, and give signs of life; say whether the bell has rung."""
        self.sign_of_life()
        return self.waiter.wait(min(seconds, self.sign_interval))

    def install_signals(self) -> None:
        """TERM, INT and HUP ask to stop; QUIT ends the process at once, in good order."""
        signal.set_wakeup_fd(self.waiter.write_descriptor, warn_on_full_buffer=False)
        for signum in graceful_signals():
            signal.signal(signum, self._stop)
        signal.signal(signal.SIGQUIT, self._quit)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def watch_parent(self) -> None:
        """End the process for certain, soon after its supervisor has died."""
        Thread(target=self._watch, name="steady-queue-parent-watch", daemon=True).start()

    def join(self, kind: str, metadata: dict[str, object]) -> Membership | None:
        """Register among the processes, however long the database takes; ``None``: stopped."""
        membership = Membership(
            self.database,
            kind=kind,
            name=self.name,
            supervisor_id=self.supervisor_id,
            interval=self.options.process_heartbeat_interval,
            threshold=self.options.process_alive_threshold,
            metadata=metadata,
            marks=self.marks.path,
        )
        while not self.stopping:
            try:
                process_id = membership.register()
            except Unavailable as unavailable:
                self.rest(unavailable.pause)
            else:
                self.report(process_id)
                return membership
        self.marks.leave_cleanly()
        return None

    def attend(self, kind: str, metadata: dict[str, object], do: Callable[[], float]) -> None:
        """Register, do rounds until asked to stop, and leave.

        ``do`` returns the seconds until the next round is worth while. A round that fails, for
        what a row holds, is logged and tried again.
        """
        membership = self.join(kind, metadata)
        if membership is None:
            return
        self._membership = membership
        while not self.stopping:
            try:
                if not membership.beat_if_due():
                    logger.warning("%s was declared dead; it ends", self.name)
                    break
                pause = min(do(), membership.until_beat)
            except Unavailable as unavailable:
                # However overdue the heartbeat is: it cannot be given sooner.
                pause = unavailable.pause
            except Exception:
                logger.exception("%s could not do its work; it tries again", self.name)
                pause = min(FAILURE_PAUSE, membership.until_beat or FAILURE_PAUSE)
            self.rest(pause)
        self.marks.leave_cleanly()
        self.leave(membership)

    def tell(self, metadata: dict[str, object]) -> None:
        """Have our row say what we do now, if that has changed. Raises ``Unavailable``."""
        if self._membership is not None:
            self._membership.tell(metadata)

    def rest(self, seconds: float) -> None:
        """Sleep for ``seconds`` unless asked to stop, and give signs of life."""
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            self.sleep(left)

    def leave(self, membership: Membership) -> None:
        """Take the row away, unless the supervisor will do it."""
        if self.orphaned:
            try:
                membership.deregister()
            except Unavailable:
                logger.warning("%s could not deregister; it will be pruned", self.name)

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        self.stop_requested = True

    def _quit(self, signum: int, frame: FrameType | None) -> None:
        self.marks.leave_cleanly()
        os._exit(0)

    def _watch(self) -> None:
        while not self.orphaned:
            time.sleep(0.5)
        self.waiter.wake()
        time.sleep(ORPHAN_GRACE)
        os._exit(1)
