"""Children that are threads of the supervisor's own process."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Thread

from ...configuration import ResolvedOptions
from ...errors import ThreadTerminatedError
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ..base.connection_setup import as_control_thread
from ..base.context import ProcessContext
from ..base.journal import RunJournal, folder_for
from ..base.registration import new_name
from ..base.thread_interrupt import TaskInterrupted, interrupt
from .managed_process import ManagedProcess, ProcessSpec

logger = get_logger("steady_queue.process")

#: Seconds that tasks whose worker has ended may take to end, too.
TASK_GRACE = 2.0
#: Seconds between two tries to interrupt them.
INTERRUPT_INTERVAL = 0.2


@dataclass(eq=False, kw_only=True)
class ThreadedProcess(ManagedProcess):
    """A thread, with the threads of its tasks. Threads cannot be killed: this one is asked to
    stop, interrupted by an exception, and then counts as ended, even if it hangs."""

    context: ProcessContext
    wake_supervisor: Callable[[], None]
    error: BaseException | None = None
    #: Whether it counts as ended, though it may hang somewhere.
    given_up: bool = False

    def start(self) -> None:
        """Start the thread. Raises ``RuntimeError`` if the system lacks the resources."""
        self.thread = Thread(target=self._run, name=f"steady-queue-{self.name}", daemon=True)
        self.thread.start()

    def read_reports(self, timeout: float) -> None:
        # Other reports are calls of the context's ``report``.
        if self.context.database.is_waiting:
            self.note_alive(timeout, ready=False)

    def request_stop(self) -> None:
        self.context.stop_requested = True
        self.context.waiter.wake()

    def retire(self) -> None:
        self.context.retiring = True
        self.context.waiter.wake()

    def reopen_logs(self) -> None:
        self.context.reopen_logs()

    def log_stacks(self) -> None:
        self.context.log_stacks()

    def terminate(self) -> None:
        self.request_stop()
        if self.context.tasks is not None:
            self.left_tasks = self.left_tasks or self._tasks_running
            self.context.tasks.break_off()

    def kill(self) -> None:
        self.context.giving_up = True
        self.terminate()
        interrupt(self.thread)
        self.given_up = True

    def close(self) -> None:
        if self.context.tasks is not None:
            self.context.tasks.close()
        self.journal.close()

    def lost_error(self, how: str) -> ThreadTerminatedError:
        return ThreadTerminatedError(f"The thread {self.name} {how} while it was running this job.")

    @property
    def _tasks_running(self) -> bool:
        return self.context.tasks is not None and self.context.tasks.running > 0

    def _run(self) -> None:
        with suppress(TaskInterrupted), closing(self.context.waiter):
            # If interrupted, we were given up: anything that we still did would be too late.
            with as_control_thread():
                self._work()
            self._end_tasks()
        self.wake_supervisor()

    def _work(self) -> None:
        try:
            self.context.run(lambda: self.spec.build(self.context).run())
        except TaskInterrupted:
            raise
        except BaseException as error:
            self.error = error
            log_internal_error(
                logger,
                "%s failed",
                self.name,
                level=logging.CRITICAL,
                extra=about("process.failed", kind=self.spec.kind),
            )

    def _end_tasks(self) -> None:
        """Let no task outlive its worker: another worker is going to run its job."""
        if self.context.tasks is None:
            return
        self.left_tasks = self.left_tasks or self._tasks_running
        deadline = time.monotonic() + TASK_GRACE
        self.context.tasks.break_off()
        while self._tasks_running and time.monotonic() < deadline and not self.given_up:
            time.sleep(INTERRUPT_INTERVAL)
            self.context.tasks.break_off()


class ThreadLauncher:
    """Starts children as threads; calls ``wake_supervisor()`` when one has ended."""

    wants_no_threads = False

    def __init__(
        self,
        children: Callable[[], Iterable[ManagedProcess]],
        wake_supervisor: Callable[[], None],
    ) -> None:
        """``children()`` are all that are alive."""
        self._children, self.wake_supervisor = children, wake_supervisor
        self.reserved: set[int] = set()  # Threads keep what the process has.

    def start(
        self, spec: ProcessSpec, options: ResolvedOptions, using: str, supervisor_id: int | None
    ) -> ManagedProcess:
        """Start a thread for ``spec``. Raises ``RuntimeError``, too."""
        name = new_name(spec.kind)
        journal = RunJournal.create(name, spec.capacity, folder_for(options.state_directory))
        journal.set_owner(os.getpid())
        timeout = options.fork_startup_timeout.total_seconds()
        try:
            context = ProcessContext(
                options=options,
                using=using,
                kind=spec.kind,
                name=name,
                journal=journal,
                report=lambda process_id: child.note_alive(timeout, ready=process_id is not None),
                report_at_work=lambda: setattr(child, "is_at_work", True),
                report_used_up=lambda: setattr(child, "wants_successor", True),
                supervisor_id=supervisor_id,
                titled=False,
            )
        except OSError:
            journal.discard()
            raise
        child = ThreadedProcess(
            spec, name, os.getpid(), journal, context=context, wake_supervisor=self.wake_supervisor
        )
        child.deadline = time.monotonic() + timeout
        try:
            child.start()
        except RuntimeError:
            context.waiter.close()
            journal.discard()
            raise
        return child

    def ended(self) -> list[tuple[ManagedProcess, str]]:
        """Return the children that have ended, or were given up, and how."""
        threads = [child for child in self._children() if isinstance(child, ThreadedProcess)]
        return [
            (child, _ending(child))
            for child in threads
            if child.given_up or not child.thread.is_alive()
        ]


def _ending(child: ThreadedProcess) -> str:
    if child.error is not None:
        return f"ended with {type(child.error).__name__}"
    return "was given up" if child.given_up else "ended"
