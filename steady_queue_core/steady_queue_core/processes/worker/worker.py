"""Worker: takes ready jobs, runs them, and stores what became of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from ...compat import Task
from ...configuration import Configuration
from ...dialects import ClaimedJob, Ending, QueueSelector, Wakeup
from ...errors import UnregisteredTaskError
from ...logging import about, get_logger
from ...tasks.definition import registered_tasks
from ..base.context import ProcessContext
from ..base.database import DatabaseClock, Unavailable
from ..base.registration import ProcessRegistration
from . import outcomes
from .attempt import Done
from .event_loop import EventLoop
from .executor import Executor, is_coroutine
from .lane import Place
from .prefetch import Prefetch
from .settlement import Refused, Settlement
from .thread_pool import ThreadPool, Work

logger = get_logger("steady_queue.worker")

#: Most outcomes that one statement stores.
LARGEST_BATCH = 500
#: Seconds between two claims when rows are at odds with each other.
REFUSAL_PAUSE = 1.0
#: First pause of a worker that found nothing; it doubles up to the polling interval.
FIRST_PAUSE = 0.001
#: Seconds before the end of the shutdown time-out in which no more signals are sent.
LAST_MOMENT = 0.5
#: How many polling intervals a worker rests at most while a bell would ring for new work.
RESTING = 5


def slots(settings: Configuration.Worker) -> int:
    """Return how many jobs a worker can hold at once."""
    return settings.threads + settings.coroutines + settings.prefetch


class Worker:
    """Its main thread alone talks to the queue's tables: one statement stores the outcomes that
    have gathered and claims the next jobs. Threads and an event loop run the tasks."""

    kind = "worker"

    def __init__(self, context: ProcessContext, settings: Configuration.Worker) -> None:
        self.context, self.settings = context, settings
        self.selector = QueueSelector(patterns=settings.queues)
        self.clock = DatabaseClock()
        self.executor = Executor(
            context.name, self.clock, fresh_connections=settings.fresh_connections
        )
        self.pool = Place(ThreadPool(settings.threads, self._run_in_thread))
        self.loop = Place(EventLoop(settings.coroutines, self._run_on_loop))
        self.settlement = Settlement(context, self.executor, self.selector)
        kinds = {is_coroutine(task) for task in registered_tasks()}
        self.appetite = Prefetch(
            settings.threads, settings.coroutines, settings.prefetch, mixed=len(kinds) > 1
        )
        self.registration: ProcessRegistration
        #: Outcomes on their way to the main thread: where from, and how many seconds it took there.
        self._finished: deque[tuple[Done, Place, float]] = deque()
        self._next_poll = 0.0
        self._pause = 0.0
        self._declared_dead = False
        #: How many outages there had been when the bell was connected.
        self._outages_at_bell = 0
        context.activity = self._activity
        context.tasks = self
        context.before_exit = self.settlement.signal_sender.tell_dropped

    def run(self) -> None:
        """Work until asked to stop; then let the running tasks end, and return."""
        metadata: dict[str, object] = {
            "queues": list(self.settings.queues),
            "threads": self.settings.threads,
        }
        registration = self.context.register(metadata)
        if registration is None:
            return
        self.registration = self.settlement.registration = registration
        self._listen()
        while not self.context.stopping and not self._declared_dead:
            self._turn(claiming=True)
        self.context.lifecycle.stopping()
        self._wind_up()

    def _wind_up(self) -> None:
        timeout = self.context.options.shutdown_timeout.total_seconds()
        deadline = time.monotonic() + timeout
        self._give_back(self.pool)
        self._give_back(self.loop)
        while self.settlement.held and time.monotonic() < deadline and not self.context.giving_up:
            self._turn(claiming=False, longest_wait=deadline - time.monotonic())
        # Before the supervisor's patience ends, for what was not sent to be told.
        left = deadline - min(LAST_MOMENT, timeout / 4) - time.monotonic()
        self.settlement.signal_sender.stop(0.0 if self.context.giving_up else left)
        self.context.journal.mark_clean_exit()
        if not self.settlement.held:
            self.context.deregister(self.registration)

    # --- for the supervisor, where the worker is a thread ---------------------------------------

    @property
    def running(self) -> int:
        """How many tasks run."""
        return self.pool.runner.running + self.loop.runner.running

    def break_off(self) -> None:
        """Break off the tasks that run. Their jobs go back to the queue if the worker lives."""
        self.executor.breaking_off = True
        self.pool.runner.interrupt()
        self.loop.runner.interrupt()

    def close(self) -> None:
        """Have the threads of the worker end, as soon as their tasks have."""
        self.pool.runner.close()
        self.loop.runner.close()
        self.settlement.signal_sender.stop(seconds=0.0)

    # --- the main thread ---------------------------------------------------------------------

    def _turn(self, *, claiming: bool, longest_wait: float = 60.0) -> None:
        """Do what is to be done, and sleep until there may be more."""
        try:
            self._collect()
            self._beat()
            limit = self._limit() if claiming else 0
            if self.settlement.waiting or limit:
                self._exchange(limit)
        except Unavailable as unavailable:
            # Finished tasks do not cut this short: the database needs the rest.
            rest = self.context.rest if claiming else self.context.sleep
            rest(min(longest_wait, unavailable.pause))
        else:
            self._sleep(min(longest_wait, self._idle_time(claiming)))

    def _sleep(self, seconds: float) -> None:
        waiter = self.context.waiter
        self.context.report_alive()
        # Set before the last look: a thread that finishes after it will wake us.
        waiter.sleeping = True
        if not self._finished and self.context.sleep(seconds):
            # A bell may ring a moment before the commit can be seen: look again soon after.
            self._next_poll = self._pause = 0.0
        waiter.sleeping = False

    def _idle_time(self, claiming: bool) -> float:
        if self.settlement.waiting:
            return 0.0
        now = time.monotonic()
        moments = [self.registration.until_beat, self.pool.until_stall, self.loop.until_stall]
        if claiming and self._appetite():
            moments.append(self._next_poll - now)
        return max(0.0, min(moments))

    def _beat(self) -> None:
        if self._declared_dead or self.registration.beat_if_due():
            return
        # Our claims were taken away: what still runs will not be recorded.
        logger.warning(
            "%s was declared dead; it ends", self.context.name, extra=about("process.declared_dead")
        )
        self._declared_dead = True

    def _collect(self) -> None:
        """Take over what the threads and the loop have finished."""
        paces = {self.pool: self.appetite.threads, self.loop: self.appetite.coroutines}
        took: dict[Place, list[float]] = {place: [] for place in paces}
        while self._finished and len(self.settlement.waiting) < LARGEST_BATCH:
            done, place, seconds = self._finished.popleft()
            self.settlement.add(done)
            place.note_end()
            if done.outcome.ending is not Ending.RELEASED:
                took[place].append(seconds)
        for place, pace in paces.items():
            if took[place]:
                self.appetite.observe_ends(pace, sum(took[place]) / len(took[place]))
            if place.until_stall <= 0:
                self.appetite.observe_stall(pace)
                self._give_back(place)

    def _appetite(self) -> int:
        if not self.registration.holds_lease or self._declared_dead:
            return 0
        if self.settlement.signal_sender.behind:
            return 0
        room = slots(self.settings) - len(self.settlement.held)
        return min(room, self.appetite.limit(self.pool.held, self.loop.held))

    def _limit(self) -> int:
        # Outcomes take a claim along on their way, even before the next poll is due.
        due = self.settlement.waiting or time.monotonic() >= self._next_poll
        return self._appetite() if due else 0

    def _exchange(self, limit: int) -> None:
        try:
            claimed = self.settlement.exchange(limit)
        except Refused:
            self._next_poll = time.monotonic() + REFUSAL_PAUSE
            return
        self._begin(claimed)
        self._plan_next_poll(limit, len(claimed))
        if self.context.database.outages > self._outages_at_bell:
            self._listen()  # The bell may hear nothing any more, and not know.

    def _plan_next_poll(self, limit: int, claimed: int) -> None:
        longest = self.settings.polling_interval.total_seconds()
        if self.context.waiter.is_listening:
            longest *= RESTING
        if limit and claimed >= limit:
            self._pause = 0.0
        elif limit:
            self._pause = min(longest, self._pause * 2 or FIRST_PAUSE)
        self._next_poll = time.monotonic() + self._pause

    def _begin(self, claimed: list[ClaimedJob]) -> None:
        """Hand claimed jobs to where their tasks run."""
        if not claimed:
            return
        self.clock.set(claimed[0].claimed_at)
        for_threads: list[Work] = []
        for_loop: list[Work] = []
        for claim in claimed:
            try:
                task = self.executor.task_of(claim)
            except UnregisteredTaskError as error:
                self.settlement.add(self.executor.refuse(claim, error))
            except Exception as error:
                self.settlement.add(self.executor.broken(claim, error))
            else:
                (for_loop if is_coroutine(task) else for_threads).append((claim, task))
        self.pool.submit(for_threads)
        self.loop.submit(for_loop)
        self.appetite.observe_kinds(len(for_loop), len(claimed))

    def _activity(self) -> str:
        return f"queues {','.join(self.settings.queues)}, {self.running} running"

    def _give_back(self, place: Place) -> None:
        """Release the jobs that have not begun."""
        for claim in place.withdraw():
            self.settlement.add(Done(outcomes.released(claim)))

    def _listen(self) -> None:
        """Listen to a bell that is connected now, if there is one."""
        self._outages_at_bell = self.context.database.outages
        self.context.waiter.listen_to(self._bell())

    def _bell(self) -> Wakeup | None:
        try:
            return self.context.database.run(lambda connection, dialect: dialect.wakeup(connection))
        except Unavailable:
            return None

    # --- threads and event loop --------------------------------------------------------------

    def _run_in_thread(self, claim: ClaimedJob, task: Task) -> None:
        began = time.monotonic()
        if self._may_start(claim):
            try:
                done = self.executor.run(claim, task)
            except BaseException as error:
                done = self._broken(claim, error)
        else:
            done = Done(outcomes.released(claim))
        self.context.journal.end(done.outcome)
        self._finish(done, self.pool, began)

    def _run_on_loop(self, claim: ClaimedJob, task: Task) -> Coroutine[Any, Any, None]:
        # It has its room from now on, though others may keep the loop busy before it begins.
        return self._run_coroutine(claim, task, began=time.monotonic())

    async def _run_coroutine(self, claim: ClaimedJob, task: Task, began: float) -> None:
        if self._may_start(claim):
            try:
                done = await self.executor.arun(claim, task)
            except BaseException as error:
                done = self._broken(claim, error)
        else:
            done = Done(outcomes.released(claim))
        self.context.journal.end(done.outcome)
        self._finish(done, self.loop, began)

    def _broken(self, claim: ClaimedJob, error: BaseException) -> Done:
        if self.executor.breaking_off:
            return Done(outcomes.released(claim))
        return self.executor.broken(claim, error)

    def _may_start(self, claim: ClaimedJob) -> bool:
        """Mark a job as started, unless it may be somebody else's by now: we may have slept."""
        if self.executor.breaking_off:
            return False  # The worker has ended, and its jobs are for somebody else.
        # In this order: who declares us dead finds the mark, or we find our lease at its end.
        self.context.journal.start(claim.job_id, claim.token)
        if self.registration.holds_lease:
            return True
        self.context.journal.clear(claim.job_id, claim.token)
        return False

    def _finish(self, done: Done, place: Place, began: float) -> None:
        self._finished.append((done, place, time.monotonic() - began))
        if self.context.waiter.sleeping:
            self.context.waiter.sleeping = False
            self.context.waiter.wake()
