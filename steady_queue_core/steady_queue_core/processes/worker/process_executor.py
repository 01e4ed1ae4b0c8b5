"""Executes claimed jobs in task processes, one for each thread of the pool."""

from __future__ import annotations

import socket
import threading
import time
from datetime import datetime

from ...compat import Task
from ...configured_backends import own_backends
from ...dialects import ClaimedJob, Ending, Outcome
from ...errors import ProcessExitError, ReportedTaskError
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...tasks.cancellation import as_cancelled, is_requested
from ...tasks.metadata import JobMetadata
from ...tasks.outbox import MOST_BYTES, MOST_CALLS
from ...tasks.results import errors_of
from ..base.forking import describe_exit
from . import outcomes
from .attempt import Attempt, RunResult
from .executor import Executor
from .interruptions import Reason
from .nursery import Nursery, NurseryLost
from .task_process import EndedAtWork, NotStarted, TaskProcess
from .time_outs import exceeded
from .wire import read_outcome, write_job

logger = get_logger("steady_queue.worker")

#: Bytes of an outcome beyond its return value, which is escaped once more: the errors of all
#: attempts, shortened.
LARGEST_ERRORS = 4 << 20
#: Bytes of the jobs that a task may leave to its outcome, and of what is sent beside their texts.
LARGEST_FOLLOW_UPS = MOST_BYTES + MOST_CALLS * 4096
#: Most seconds that task processes without a job have to end when the worker stops.
FAREWELL_TIME = 2.0
#: New processes in a row that may end before they have received their first job.
MOST_STILLBORN = 3


class ProcessExecutor:
    """Runs each job in a task process of the calling thread, and replaces that when it ends."""

    def __init__(self, executor: Executor, nursery: Nursery) -> None:
        self.executor, self.nursery = executor, nursery
        self._own = threading.local()
        #: The process that runs each job.
        self._at_work: dict[int, TaskProcess] = {}
        self._lock = threading.Lock()
        #: The processes of all threads.
        self._all: set[TaskProcess] = set()
        #: Whether no task process can be forked any more.
        self.is_crippled = False

    def run(self, claim: ClaimedJob, task: Task) -> RunResult:
        """Run a job; return its result, which may be that its process ended meanwhile."""
        began = self.executor.clock.now()
        try:
            return self._run(claim, task, began)
        except NurseryLost as error:
            return self._given_back(claim, error)

    def interrupt_job(self, job_id: int, reason: Reason) -> None:
        """Have the process that runs a job be killed, if one does, whatever the reason."""
        with self._lock:
            process = self._at_work.get(job_id)
            if process is not None:
                process.abandon()

    def ask_for_stacks(self) -> None:
        """Have the processes that run jobs log what they do."""
        with self._lock:
            for process in self._at_work.values():
                process.ask_for_stacks()

    def _run(self, claim: ClaimedJob, task: Task, began: datetime) -> RunResult:
        job = write_job(claim, began)
        for _ in range(MOST_STILLBORN):
            process = self._process()
            try:
                answer = self._call(process, claim, job)
                if answer is None:
                    return self._not_called(claim, task, began)
                outcome, settled = read_outcome(answer, claim)
                outcome = self._kept(outcome, claim)
            except NotStarted:
                self._bury(process)
            except (EndedAtWork, ValueError) as error:
                try:
                    death = self._death_of(process, error)
                except NurseryLost:  # We have ended it ourselves.
                    return self.executor.broken_off(claim)
                return self._lost(claim, task, began, process.pid, death)
            else:
                result = self._result(claim, task, began, outcome)
                return result if settled is None else result._replace(settled=settled)
        raise NurseryLost(f"{MOST_STILLBORN} new task processes have ended at once")

    def _call(self, process: TaskProcess, claim: ClaimedJob, job: bytes) -> bytes | None:
        """Have a job run; return its outcome, or ``None`` if it was told to end before."""
        # In this order: either the process is found when the job is told to end, or we see it.
        with self._lock:
            self._at_work[claim.job_id] = process
        try:
            if is_requested(claim.job_id, claim.token):
                return None
            if self.executor.exceeded_limit(claim.job_id) is not None:
                return None
            return process.call(job)
        finally:
            # Under the lock: it might run another job by the time it is abandoned.
            with self._lock:
                del self._at_work[claim.job_id]

    def _not_called(self, claim: ClaimedJob, task: Task, began: datetime) -> RunResult:
        """Return the result of a job that was cancelled, or whose time was over, before a process
        had received it: a new one takes a moment."""
        limit = self.executor.exceeded_limit(claim.job_id)
        if limit is None or is_requested(claim.job_id, claim.token):
            return self.executor.cancelled(claim)
        return self._attempt(claim, task, began).failed(exceeded(limit), self.executor.clock.now())

    def _process(self) -> TaskProcess:
        """Return the task process of the calling thread."""
        process: TaskProcess | None = getattr(self._own, "process", None)
        if process is None:
            pid, connection = self.nursery.fork()
            process = self._own.process = TaskProcess(pid, connection, self._largest)
            self._all.add(process)
        return process

    def dismiss(self, deadline: float) -> None:
        """Let the processes end that have no job, with what their tasks have left to be done then:
        until ``deadline``, by the monotonic clock, but not for long."""
        latest = min(deadline, time.monotonic() + FAREWELL_TIME)
        idle = [each for each in self._all if each not in self._at_work.values()]
        for process in idle:
            process.dismiss()
        for process in idle:
            process.await_end(latest)

    @property
    def _largest(self) -> int:
        """The largest outcome, in bytes: quotes in the return value are escaped once more."""
        limits = [each.payload_limits.max_bytes for each in own_backends().values()]
        return 2 * max(limits) + LARGEST_ERRORS + LARGEST_FOLLOW_UPS

    def _bury(self, process: TaskProcess) -> int:
        """Forget a task process, and return its exit code. Raises ``NurseryLost``."""
        self._own.process = None
        self._all.discard(process)
        process.close()
        return self.nursery.reap(process.pid)

    def _death_of(self, process: TaskProcess, error: Exception) -> str:
        """Return how a process has ended that received a job and sent no outcome."""
        try:
            code = self._bury(process)
        except NurseryLost:
            if self.nursery.closing:
                raise  # We have ended it: the job is to run elsewhere.
            how = "ended"
        else:
            how = f"sent nonsense ({error})" if str(error) else describe_exit(code)
        logger.warning(
            "A task process (pid %d) %s while it was running a job",
            process.pid,
            how,
            extra=about("worker.task_process_ended", child_pid=process.pid),
        )
        return f"The task process (pid {process.pid}) of {self.executor.worker} {how}"

    def _lost(
        self, claim: ClaimedJob, task: Task, began: datetime, pid: int, death: str
    ) -> RunResult:
        error = ProcessExitError(f"{death} while it was running this job.")
        attempt = self._attempt(claim, task, began)
        if is_requested(claim.job_id, claim.token):
            return attempt.failed(as_cancelled(error), self.executor.clock.now())
        if (limit := self.executor.exceeded_limit(claim.job_id)) is not None:
            return attempt.failed(exceeded(limit), self.executor.clock.now())
        process = f"{self.executor.worker} (task process {pid} on {socket.gethostname()})"
        result = attempt.lost(error, self.executor.clock.now(), process)
        return result._replace(lost_process=self.executor.worker)

    def _kept(self, outcome: Outcome, claim: ClaimedJob) -> Outcome:
        """Return an outcome with how long its job is kept, in which its process has no say."""
        if claim.metadata is None:
            return outcome
        usual = self.executor.backend_of(claim.backend_name).settings.clear_finished_jobs_after
        return outcomes.kept(outcome, JobMetadata.read(claim.metadata), usual)

    def _result(
        self, claim: ClaimedJob, task: Task, began: datetime, outcome: Outcome
    ) -> RunResult:
        if outcome.ending is Ending.FINISHED:
            if not self.executor.tells_of_success:
                return RunResult(outcome)
            error = None
        elif not outcome.exception_class:
            return RunResult(outcome)  # It has snoozed.
        else:
            error = _reported(outcome)
        attempt = self._attempt(claim, task, began)
        return attempt.reported(outcome, self.executor.clock.now(), error)

    def _attempt(self, claim: ClaimedJob, task: Task, began: datetime) -> Attempt:
        backend = self.executor.backend_of(claim.backend_name)
        attempt = Attempt(claim, task, backend, self.executor.worker, began)
        attempt.decode_for_signals()
        return attempt

    def _given_back(self, claim: ClaimedJob, error: NurseryLost) -> RunResult:
        if not self.is_crippled and not self.nursery.closing:
            self.is_crippled = True
            log_internal_error(
                logger,
                "The worker ends, and will be replaced: %s",
                error,
                error=error,
                extra=about("worker.crippled"),
            )
        return RunResult(outcomes.released(claim))


def _reported(outcome: Outcome) -> ReportedTaskError:
    """Return what stands for the exception that a task has raised elsewhere."""
    error = ReportedTaskError(outcome.exception_class, outcome.message)
    if known := errors_of(outcome.errors):
        error.add_note(known[-1][1])
    return error
