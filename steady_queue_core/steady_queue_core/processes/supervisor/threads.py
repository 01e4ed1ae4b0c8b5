"""Children that are threads of the supervisor's own process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Thread

from ...configuration import ResolvedOptions
from ...errors import ThreadTerminatedError
from ...logging import about, get_logger
from ..base import journal_reader as remains
from ..base.connection_setup import looking_after_queue
from ..base.context import ProcessContext
from ..base.interruption import TaskInterrupted, interrupt
from ..base.journal import RunJournal, folder_for
from ..base.registration import new_name
from .child import ManagedProcess, ProcessSpec

logger = get_logger("steady_queue.process")

#: Seconds that tasks whose worker has ended may take to end, too.
BREAK_OFF_GRACE = 2.0
#: Seconds between two tries to break them off.
INSISTENCE = 0.2


@dataclass(eq=False, kw_only=True)
class ThreadedProcess(ManagedProcess):
    """A thread, with those in which it runs tasks. No thread can be killed: what is to end is asked
    to, has an exception raised in it, and is no concern of the queue any more after that."""

    context: ProcessContext
    wake_supervisor: Callable[[], None]
    error: BaseException | None = None
    #: Whether it counts as ended, though it may hang somewhere.
    given_up: bool = False

    def begin(self) -> None:
        """Start the thread. Raises ``RuntimeError`` when the system has no room for one."""
        self.thread = Thread(target=self._live, name=f"steady-queue-{self.name}", daemon=True)
        self.thread.start()

    def read_reports(self, patience: float) -> None:
        # Others come without being asked for.
        if self.context.database.is_waited_for:
            self.saw_sign(patience, ready=False)

    def ask_to_stop(self) -> None:
        self.context.stop_requested = True
        self.context.waiter.wake()

    def break_off(self) -> None:
        self.ask_to_stop()
        if self.context.tasks is not None:
            self.broke_off = self.broke_off or self._tasks_running
            self.context.tasks.break_off()

    def kill(self) -> None:
        self.context.giving_up = True
        self.break_off()
        interrupt(self.thread)
        self.given_up = True

    def forget(self) -> None:
        if self.context.tasks is not None:
            self.context.tasks.close()

    def lost(self, how: str) -> ThreadTerminatedError:
        return ThreadTerminatedError(f"The thread {self.name} {how} while it was running this job.")

    @property
    def _tasks_running(self) -> bool:
        return self.context.tasks is not None and self.context.tasks.running > 0

    def _live(self) -> None:
        with suppress(TaskInterrupted), closing(self.context.waiter):
            # An interruption means that we were given up: whatever we do is too late.
            with looking_after_queue():
                self._work()
            self._end_tasks()
        self.wake_supervisor()

    def _work(self) -> None:
        try:
            self.context.live(lambda: self.spec.build(self.context).run())
        except TaskInterrupted:
            raise
        except BaseException as error:
            self.error = error
            logger.critical(
                "%s failed",
                self.name,
                exc_info=True,
                extra=about("process.failed", kind=self.spec.kind),
            )

    def _end_tasks(self) -> None:
        """Let no task outlive its worker: somebody else is going to run its job."""
        if self.context.tasks is None:
            return
        self.broke_off = self.broke_off or self._tasks_running
        deadline = time.monotonic() + BREAK_OFF_GRACE
        self.context.tasks.break_off()
        while self._tasks_running and time.monotonic() < deadline and not self.given_up:
            time.sleep(INSISTENCE)
            self.context.tasks.break_off()


class Threads:
    """Starts children as threads; ``wake_supervisor()`` is called when one has ended."""

    wants_no_threads = False

    def __init__(
        self, options: ResolvedOptions, using: str, wake_supervisor: Callable[[], None]
    ) -> None:
        self.options, self.using, self.wake_supervisor = options, using, wake_supervisor

    def start(
        self, spec: ProcessSpec, supervisor_id: int | None, siblings: list[ManagedProcess]
    ) -> ManagedProcess:
        """Start a thread for ``role``. Raises ``RuntimeError`` as well."""
        name = new_name(spec.kind)
        journal = RunJournal.create(name, spec.slots, folder_for(self.options.state_directory))
        journal.belong_to(os.getpid())
        patience = self.options.fork_startup_timeout.total_seconds()
        context = ProcessContext(
            options=self.options,
            using=self.using,
            kind=spec.kind,
            name=name,
            journal=journal,
            report=lambda process_id: child.saw_sign(patience, ready=process_id is not None),
            supervisor_id=supervisor_id,
            titled=False,
        )
        child = ThreadedProcess(
            spec, name, os.getpid(), journal, context=context, wake_supervisor=self.wake_supervisor
        )
        child.deadline = time.monotonic() + patience
        try:
            child.begin()
        except RuntimeError:
            context.waiter.close()
            remains.forget(journal.path)
            raise
        return child

    def ended(self, children: list[ManagedProcess]) -> list[tuple[ManagedProcess, str]]:
        """Return the children that have ended, or were given up."""
        threads = [child for child in children if isinstance(child, ThreadedProcess)]
        return [
            (child, _ending(child))
            for child in threads
            if child.given_up or not child.thread.is_alive()
        ]


def _ending(child: ThreadedProcess) -> str:
    if child.error is not None:
        return f"ended with {type(child.error).__name__}"
    return "was given up" if child.given_up else "ended"
