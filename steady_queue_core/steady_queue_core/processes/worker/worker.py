"""Worker: claims ready jobs, runs their tasks and stores the outcomes."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from functools import partial

from ...configuration import Configuration
from ...dialects import QueueSelector
from ...logging import about, get_logger
from ..base.context import ProcessContext
from ..base.database import DatabaseClock, Unavailable
from ..base.log_context import about_job
from ..base.registration import ProcessRegistration
from ..base.system import lease_clock, use_processors
from .cancellation_watch import CancellationWatch
from .executor import Executor
from .intake import Intake, new_gate
from .lanes import Lanes
from .nursery import Nursery
from .poll_timer import PollTimer
from .prefetch import capacity
from .process_executor import ProcessExecutor
from .recycling import Recycling, recycle, replace_stuck
from .settlement import Refused, Settlement
from .task_server import serve_tasks

logger = get_logger("steady_queue.worker")

#: Most outcomes that one statement stores.
LARGEST_BATCH = 500
#: Most seconds between two turns.
LONGEST_WAIT = 60.0
#: Seconds until the next claim after the database has refused outcomes or claims.
REFUSAL_PAUSE = 1.0
#: Seconds before the end of the shutdown time-out after which no more signals are sent.
LAST_MOMENT = 0.5


class Worker:
    """Runs tasks in threads and on an event loop, or in task processes.

    Only its main thread queries the queue's tables: one statement stores the outcomes that have
    gathered and claims the next jobs.
    """

    kind = "worker"

    def __init__(self, context: ProcessContext, settings: Configuration.Worker) -> None:
        self.context, self.settings = context, settings
        # Before there are threads, which would use other processors, and could not be forked.
        if settings.cpu_affinity is not None:
            use_processors(settings.cpu_affinity)
        serve = partial(serve_tasks, worker=context.name, using=context.using, settings=settings)
        self.nursery = Nursery(serve) if settings.runs_processes else None
        self.clock = DatabaseClock()
        self.executor = Executor(
            context.name,
            self.clock,
            fresh_connections=settings.fresh_connections,
            using=context.using,
        )
        self.processes = ProcessExecutor(self.executor, self.nursery) if self.nursery else None
        gate = new_gate()
        self.lanes = Lanes(context, settings, self.executor, self.processes, gate)
        selector = QueueSelector.of(settings.queues)
        self.settlement = Settlement(context, self.executor, selector)
        self.intake = Intake(context, self.executor, self.clock, self.lanes, gate, self.settlement)
        self.registration: ProcessRegistration
        self.recycling = Recycling(settings)
        self.poll_timer = PollTimer(settings.polling_interval.total_seconds())
        self.cancellations = CancellationWatch()
        self._declared_dead = False
        #: Number of outages when the wake-up listener was connected.
        self._outages_at_listen = 0
        context.activity = self._activity
        context.tasks = self
        context.before_exit = self._before_exit

    def run(self) -> None:
        """Work until asked to stop, then let the running tasks end."""
        metadata: dict[str, object] = {
            "queues": list(self.settings.queues),
            "threads": self.settings.threads,
        }
        if self.nursery is not None:
            metadata["executor"] = self.settings.executor
        registration = self.context.register(metadata)
        if registration is None:
            return
        self.registration = registration
        self.settlement.registration = self.lanes.registration = registration
        self._listen()
        self.recycling.look_at_beginning()
        self.context.report_at_work()
        while not self.context.stopping and not self._has_to_end:
            self._iterate(claiming=True)
        if self.lanes.stuck:
            replace_stuck(self.context, self.lanes.stuck)
        self.context.lifecycle.stopping()
        self._shut_down()

    def _shut_down(self) -> None:
        timeout = self.context.options.shutdown_timeout.total_seconds()
        deadline = math.inf
        self.intake.release(self.lanes.withdraw())
        while self._awaits_ends and not self.context.giving_up:
            if deadline == math.inf and not self._may_take_its_time:
                deadline = time.monotonic() + timeout
            if (left := deadline - time.monotonic()) <= 0:
                break
            self._iterate(claiming=False, longest_wait=min(left, LONGEST_WAIT))
        # Early enough to log the signals that were not sent before the supervisor kills us.
        deadline = min(deadline, time.monotonic() + timeout) - min(LAST_MOMENT, timeout / 4)
        left = 0.0 if self.context.giving_up else deadline - time.monotonic()
        self.settlement.signal_sender.stop(left)
        self.settlement.store_statistics(at_once=True)
        self.context.journal.mark_clean_exit()
        if self.processes is not None and not self.context.giving_up:
            self.processes.dismiss(deadline)
        if self.nursery is not None:
            self.nursery.close()
        if not self.settlement.held:
            self.context.deregister(self.registration)

    def _before_exit(self) -> None:
        if self.nursery is not None:
            self.nursery.close()
        self.settlement.signal_sender.log_dropped()

    @property
    def _awaits_ends(self) -> bool:
        """Whether jobs are held of which an end can be expected."""
        held = self.settlement.held
        return bool(held) and not held.keys() <= self.lanes.unending

    @property
    def _may_take_its_time(self) -> bool:
        """Whether running tasks may take any time, for a successor is at work, or about to be."""
        if self.context.retires_at_leisure:
            return True
        is_ending = self.context.stop_requested or self.context.orphaned or self._declared_dead
        return bool(self.lanes.stuck) and not is_ending

    @property
    def _has_to_end(self) -> bool:
        """Whether this worker can run no more jobs, and another one has to."""
        if self._declared_dead or self.lanes.stuck or self.lanes.is_crippled:
            return True
        return self.processes is not None and self.processes.is_crippled

    # --- for the supervisor of a worker thread --------------------------------------------------

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return self.lanes.running

    def break_off(self) -> None:
        """Interrupt the running tasks. Their jobs are released if the worker lives on."""
        self.lanes.interrupt()

    def close(self) -> None:
        """End the threads of the worker as soon as their tasks have ended."""
        self.lanes.close()
        self.settlement.signal_sender.stop(seconds=0.0)

    def log_stacks(self) -> None:
        """Log what each thread and coroutine does, and for which job. Thread safe."""
        self.lanes.log_stacks(list(self.settlement.held.values()))
        if self.processes is not None:
            self.processes.ask_for_stacks()

    # --- main thread -----------------------------------------------------------------------------

    def _iterate(self, *, claiming: bool, longest_wait: float = LONGEST_WAIT) -> None:
        """Store outcomes and claim jobs, then sleep until there may be more to do."""
        try:
            self._collect()
            self.intake.give_back()
            self._heartbeat()
            if self.cancellations.open:
                self._cancel()
            limit = self._claim_limit() if claiming else 0
            polling = limit > 0
            # Outcomes take a claim along, even before the next poll is due.
            if self.settlement.waiting or (polling and self.poll_timer.until_due <= 0):
                self._settle_and_claim(limit)
                polling = claiming  # The limit has changed: compute it anew at the next poll.
        except Unavailable as unavailable:
            # Not interrupted by finished tasks: the database needs the pause.
            rest = self.context.rest if claiming else self.context.sleep
            rest(min(longest_wait, unavailable.pause))
        else:
            self.settlement.store_statistics()
            self._sleep(min(longest_wait, self._idle_time(polling=polling)))

    def _collect(self) -> None:
        """Take over the results from the lanes, and release the jobs that stall there."""
        self.settlement.recall()
        results = self.lanes.collect(max(0, LARGEST_BATCH - len(self.settlement.waiting)))
        for result in results:
            self.settlement.add(result)
        if not self.settings.runs_processes and self.recycling.is_due_after(len(results)):
            recycle(self.context, self.recycling.jobs)
        self.intake.release(self.lanes.withdraw(stalled=True))

    def _cancel(self) -> None:
        """Interrupt the jobs that were cancelled, if it is time to ask for them."""
        if self.cancellations.until_due(self.settlement.age) > 0:
            return
        self.cancellations.note_question()
        for claim in self.settlement.cancelled():
            logger.info(
                "Job %d was cancelled: its task is interrupted",
                claim.job_id,
                extra=about_job("task.interrupting", claim),
            )
            self.lanes.cancel(claim)

    def _heartbeat(self) -> None:
        if self._declared_dead or self.registration.beat_if_due():
            return
        # Other processes have taken over our claims: running tasks will not be recorded.
        logger.warning(
            "%s was declared dead; it ends", self.context.name, extra=about("process.declared_dead")
        )
        self._declared_dead = True

    def _claim_limit(self) -> int:
        may_claim = self.registration.holds_lease and not self._declared_dead
        if not may_claim or self.settlement.signal_sender.behind:
            return 0
        held = len(self.settlement.held)
        if self.settlement.waiting:
            held -= self.intake.excess.sent_away  # They take no room.
        return min(capacity(self.settings) - held, self.lanes.limit)

    def _settle_and_claim(self, limit: int) -> None:
        began, asked_at = time.monotonic(), lease_clock()
        asked_for = limit + self.intake.excess.number if limit > 0 else limit
        try:
            claimed = self.settlement.settle_and_claim(asked_for)
        except Refused:
            self.poll_timer.postpone(REFUSAL_PAUSE)
            return
        answered = time.monotonic()
        self.intake.start(claimed, limit, asked_at)
        if limit > 0:
            self.context.events.polled(len(claimed), asked_for, answered - began)
            self.context.events.claimed(claimed, answered - began)
        is_listening = self.context.waiter.is_listening
        self.poll_timer.note_look(len(claimed), asked_for, is_listening=is_listening)
        if self.context.database.outages > self._outages_at_listen:
            self._listen()  # The old listener may have lost its connection without noticing.

    def _idle_time(self, *, polling: bool) -> float:
        if self.settlement.waiting:
            return 0.0
        until_poll = self.poll_timer.until_due if polling else math.inf
        until_question = math.inf
        if self.cancellations.open:
            until_question = self.cancellations.until_due(self.settlement.age)
        until_others = min(
            self.registration.until_beat,
            self.lanes.until_stall,
            until_question,
            self.settlement.until_statistics,
            self.settlement.until_recall,
        )
        return max(0.0, min(until_poll, until_others))

    def _sleep(self, seconds: float) -> None:
        waiter = self.context.waiter
        self.context.report_alive()
        # Set before the last look: a thread that finishes after it will wake us.
        waiter.sleeping = True
        if self.lanes.has_results:
            self.cancellations.note_busy()
        elif self.context.sleep(seconds):
            # A wake-up may arrive just before its commit is visible: poll again soon after.
            self.poll_timer.start_over()
            self.cancellations.note_wakeup()
        elif not waiter.is_listening:
            self.cancellations.note_wakeup()
        waiter.sleeping = False

    def _activity(self) -> str:
        return f"queues {','.join(self.settings.queues)}, {self.running} running"

    def _listen(self) -> None:
        """Connect a wake-up listener, if the database has one."""
        self._outages_at_listen = self.context.database.outages
        database, wakeup = self.context.database, None
        with suppress(Unavailable):
            wakeup = database.run(lambda connection, dialect: dialect.wakeup(connection))
        self.context.waiter.listen_to(wakeup)
