"""Worker: claims ready jobs, runs their tasks and stores the outcomes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial

from ...configuration import Configuration
from ...dialects import ClaimedJob, Outcome, QueueSelector, Wakeup
from ...errors import UnregisteredTaskError
from ...logging import about, get_logger
from ..base import diagnosis
from ..base.context import ProcessContext
from ..base.database import DatabaseClock, Unavailable
from ..base.log_context import about_job, named
from ..base.registration import ProcessRegistration
from ..base.system import lease_clock, use_processors
from . import outcomes, started_keys
from .attempt import RunResult
from .cancellation_watch import CancellationWatch
from .excess import Excess
from .executor import Executor
from .lane import Lanes, follows_in_chain
from .nursery import Nursery
from .poll_timer import PollTimer
from .process_executor import ProcessExecutor
from .rated_starts import RatedStarts, is_rated
from .recycling import Recycling
from .refusals import refusal_of
from .settlement import Refused, Settlement
from .task_server import serve_tasks
from .thread_pool import Work

logger = get_logger("steady_queue.worker")

#: Most outcomes that one statement stores.
LARGEST_BATCH = 500
#: Most seconds between two turns.
LONGEST_WAIT = 60.0
#: Seconds until the next claim after the database has refused outcomes or claims.
REFUSAL_PAUSE = 1.0
#: Seconds before the end of the shutdown time-out after which no more signals are sent.
LAST_MOMENT = 0.5


def capacity(settings: Configuration.Worker) -> int:
    """Return how many jobs a worker can hold at once."""
    coroutines = 0 if settings.runs_processes else settings.coroutines
    return settings.threads + coroutines + settings.prefetch


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
        self.nursery = _nursery(context, settings) if settings.runs_processes else None
        self.clock = DatabaseClock()
        self.executor = Executor(
            context.name,
            self.clock,
            fresh_connections=settings.fresh_connections,
            using=context.using,
        )
        self.processes = ProcessExecutor(self.executor, self.nursery) if self.nursery else None
        self.rated_starts, self.excess = RatedStarts(), Excess()
        self.lanes = Lanes(context, settings, self.executor, self.processes, self.rated_starts)
        selector = QueueSelector.of(settings.queues)
        self.settlement = Settlement(context, self.executor, selector)
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
        if self.recycling.begins_too_large:
            logger.warning(
                "recycle_rss is less than what a new process takes: it is replaced again and again",
                extra=about("worker.recycle_rss_low"),
            )
        self.context.report_at_work()
        while not self.context.stopping and not self._has_to_end:
            self._iterate(claiming=True)
        if self.lanes.stuck:
            self._ask_for_successor_of_stuck()
        self.context.lifecycle.stopping()
        self._shut_down()

    def _shut_down(self) -> None:
        timeout = self.context.options.shutdown_timeout.total_seconds()
        deadline = math.inf
        self._release(self.lanes.withdraw())
        while self._awaits_ends and not self.context.giving_up:
            if deadline == math.inf and not self._may_take_its_time:
                deadline = time.monotonic() + timeout
            if (left := deadline - time.monotonic()) <= 0:
                break
            self._iterate(claiming=False, longest_wait=min(left, LONGEST_WAIT))
        deadline = min(deadline, time.monotonic() + timeout)
        # Early enough to log the signals that were not sent before the supervisor kills us.
        left = deadline - min(LAST_MOMENT, timeout / 4) - time.monotonic()
        self.settlement.signal_sender.stop(0.0 if self.context.giving_up else left)
        self.settlement.store_statistics(at_once=True)
        self.context.journal.mark_clean_exit()
        if self.processes is not None and not self.context.giving_up:
            self.processes.dismiss(deadline - min(LAST_MOMENT, timeout / 4))
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
        names = {job_id: named(claim) for job_id, claim in list(self.settlement.held.items())}
        threads, coroutines = self.lanes.places()
        diagnosis.log_stacks(
            {thread: names[job_id] for job_id, thread in threads.items() if job_id in names},
            [(names[job_id], task) for job_id, task in coroutines.items() if job_id in names],
        )
        if self.processes is not None:
            self.processes.ask_for_stacks()

    # --- main thread -----------------------------------------------------------------------------

    def _iterate(self, *, claiming: bool, longest_wait: float = LONGEST_WAIT) -> None:
        """Store outcomes and claim jobs, then sleep until there may be more to do."""
        try:
            self._collect()
            self.rated_starts.give_back(self.context.database)
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
            self._ask_for_successor()
        self._release(self.lanes.withdraw(stalled=True))

    def _ask_for_successor(self) -> None:
        """Ask, once, to be replaced; the worker goes on until another one is ready."""
        if not self.context.wants_successor:
            logger.info(
                "%s has run %d jobs and is to be recycled",
                self.context.name,
                self.recycling.jobs,
                extra=about("worker.recycled", jobs=self.recycling.jobs),
            )
            self.context.ask_for_successor()

    def _ask_for_successor_of_stuck(self) -> None:
        """Ask to be replaced because of tasks that do not end."""
        logger.error(
            "%s is to be replaced: it has tasks that did not end when they were told to, of the "
            "jobs %s",
            self.context.name,
            ", ".join(map(str, sorted(self.lanes.stuck))),
            extra=about("worker.stuck", jobs=len(self.lanes.stuck)),
        )
        self.context.ask_for_successor()

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
        if not self.registration.holds_lease or self._declared_dead:
            return 0
        if self.settlement.signal_sender.behind:
            return 0
        held = len(self.settlement.held)
        if self.settlement.waiting:
            held -= self.excess.sent_away  # They take no room.
        return min(capacity(self.settings) - held, self.lanes.limit)

    def _settle_and_claim(self, limit: int) -> None:
        began, asked_at = time.monotonic(), lease_clock()
        asked_for = limit + self.excess.number if limit > 0 else limit
        try:
            claimed = self.settlement.settle_and_claim(asked_for)
        except Refused:
            self.poll_timer.postpone(REFUSAL_PAUSE)
            return
        answered = time.monotonic()
        self._start(claimed, limit, asked_at)
        if limit > 0:
            self.context.events.polled(len(claimed), asked_for, answered - began)
            self.context.events.claimed(claimed, answered - began)
        is_listening = self.context.waiter.is_listening
        self.poll_timer.note_look(len(claimed), asked_for, is_listening=is_listening)
        if self.context.database.outages > self._outages_at_listen:
            self._listen()  # The old listener may have lost its connection without noticing.

    def _start(self, claimed: list[ClaimedJob], limit: int, asked_at: float) -> None:
        """Look up the tasks of claimed jobs and run them, at most ``limit``, and with what is left
        of it those that follow them. ``asked_at``: when they were asked for, by the lease clock."""
        if not claimed:
            return
        self.clock.set(claimed[0].claimed_at)
        self.executor.start_clock.note_claim(claimed[0].claimed_at, asked_at)
        self.executor.audience.look_again()
        work = self._work_of(claimed)
        # Of more than there is room for, those that are late are known once most were sent away.
        is_excessive = len(claimed) > limit
        work = work if is_excessive else self._in_time(work)
        permitted = self._permitted(work, limit)
        if is_excessive:
            permitted = self._in_time(self._within(permitted, limit))
        if work := self._without_keys(permitted):
            self._follow(work, max(0, limit - len(claimed)))
            self.lanes.submit(work)

    def _work_of(self, claimed: list[ClaimedJob]) -> list[Work]:
        work: list[Work] = []
        for claim in claimed:
            if claim.is_cancelled:
                self.settlement.add(self.executor.cancelled(claim))
                continue
            try:
                # Most jobs have no metadata.
                error = refusal_of(claim, claim.claimed_at) if claim.metadata is not None else None
                if error is not None:
                    self.settlement.add(self.executor.refused(claim, error))
                    continue
                work.append((claim, self.executor.task_of(claim)))
            except UnregisteredTaskError as error:
                self.settlement.add(self.executor.unknown(claim, error))
            except Exception as error:
                self.settlement.add(self.executor.broken(claim, error))
        return work

    def _in_time(self, work: list[Work]) -> list[Work]:
        """Give those jobs back that would lose their unique keys now and start later; return the
        others."""
        late = self.lanes.late_with_keys(work)
        if not late:
            return work
        self._release(late)
        return [each for each in work if each[0] not in late]

    def _permitted(self, work: list[Work], limit: int) -> list[Work]:
        """Ask for the starts of jobs with rate limits, of ``limit`` in all at the most; return the
        work that may start."""
        claims = [claim for claim, _ in work]
        not_yet = self.rated_starts.not_yet(claims, limit, self.context.database)
        permitted = self._without(not_yet, work)
        delays = [outcome.delay for outcome in not_yet.values()]
        self.excess.note(len(claims), delays, is_full=len(permitted) >= limit)
        return permitted

    def _within(self, work: list[Work], limit: int) -> list[Work]:
        """Give back what there is no room for; return the rest. Jobs that were permitted to start
        come first: others would start in vain for them."""
        work = sorted(work, key=lambda each: not is_rated(each[0]))
        self._release([claim for claim, _ in work[limit:]])
        return work[:limit]

    def _without_keys(self, work: list[Work]) -> list[Work]:
        """Free the unique keys that end with the start of a job; return the work that may start."""
        claims = [claim for claim, _ in work]
        not_yet = started_keys.not_yet(claims, self.context.database)
        self.rated_starts.withdraw(claim for claim in claims if claim.job_id in not_yet)
        return self._without(not_yet, work)

    def _without(self, not_yet: Mapping[int, Outcome], work: list[Work]) -> list[Work]:
        """Return ``work`` without the jobs that do not start now, and have these outcomes."""
        for outcome in not_yet.values():
            self.settlement.add(RunResult(outcome))
        return [each for each in work if each[0].job_id not in not_yet] if not_yet else work

    def _follow(self, work: list[Work], left: int) -> None:
        """Claim jobs that follow those of ``work`` which have a limit."""
        for holders, limit in self.lanes.shares(work, left):
            began = lease_clock()
            claims = self.settlement.claim_followers(holders, limit)
            if not claims:
                continue
            self.context.events.claimed(claims, lease_clock() - began)
            started = {holder.job_id for holder in holders}
            followers = []
            for claim, task in self._work_of(claims):
                # One that has its key until it starts is not to lose it while it follows others.
                follows = follows_in_chain(claim) and not claim.ends_key_at_start
                if claim.follows in started and follows:
                    started.add(claim.job_id)
                    followers.append((claim, task))
                else:  # The job before it has no task, or it has to wait for a permit.
                    self._release([claim])
            self.lanes.follow(followers, began)

    def _release(self, withdrawn: list[ClaimedJob]) -> None:
        self.rated_starts.withdraw(withdrawn)
        for claim in withdrawn:
            self.settlement.add(RunResult(outcomes.released(claim)))

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
        self.context.waiter.listen_to(self._wakeup())

    def _wakeup(self) -> Wakeup | None:
        try:
            return self.context.database.run(lambda connection, dialect: dialect.wakeup(connection))
        except Unavailable:
            return None


def _nursery(context: ProcessContext, settings: Configuration.Worker) -> Nursery:
    serve = partial(serve_tasks, worker=context.name, using=context.using, settings=settings)
    return Nursery(serve)
