"""Compares the plan with the database and with the tasks' own records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..batches.handle import BatchHandle
from ..compat import TaskResult, TaskResultDoesNotExist, TaskResultStatus, task_backends
from ..models import ClaimedExecution, Job, Process, ReadyExecution, RecurringExecution
from .effects import Run, most_at_once
from .plan import BACKOFF, DELAY, LATEST, PACKED, TICK, TICKS, WEIGHED, Planned, Together

#: By how many seconds two looks at the same clock may differ: the database's has milliseconds.
TOLERANCE = 0.002
#: Seconds after which a task has ended that may take half a second.
LATEST_END = 5.0
#: The tasks of the workflow.
WORKFLOW = ("weigh", "charge", "thank", "dun")


class Different(Exception):
    """An expectation did not hold; the text says what differs."""


@dataclass
class Verdict:
    """A line for every expectation, with what was found."""

    planned: Sequence[Planned]
    together: Together
    runs: Sequence[Run]
    supervisor_exit: int
    threads: int
    lines: list[str] = field(default_factory=list)
    differences: int = 0

    def reach(self) -> Verdict:
        """Check every expectation."""
        expectations: list[Callable[[], str]] = [
            self._all_done,
            self._failed_for_good,
            self._retried,
            self._resumed,
            self._cancelled,
            self._timed_out,
            self._delayed,
            self._coroutines,
            self._batch,
            self._workflow,
            self._schedule,
            self._end,
        ]
        for expectation in expectations:
            try:
                self.lines.append(f"  ok     {expectation()}")
            except Different as difference:
                self.lines.append(f"  WRONG  {difference}")
                self.differences += 1
        return self

    def _of(self, *names: str) -> list[Planned]:
        return [each for each in self.planned if each.name in names]

    def _runs_of(self, each: Planned) -> list[Run]:
        return [run for run in self.runs if (run.name, run.number) == (each.name, each.number)]

    def _named(self, name: str) -> list[Run]:
        return [run for run in self.runs if run.name == name]

    def _all_done(self) -> str:
        good = [each for each in self.planned if each.succeeds]
        queues = Job.objects.filter(pk__in=[each.job_id for each in good]).values("queue_name")
        for each in good:
            result = _ended(each, TaskResultStatus.SUCCESSFUL)
            _expect(
                result.return_value == each.number,
                f"{each} returned {result.return_value!r}, not {each.number}",
            )
            self._expect_runs(each)
        return (
            f"{len(good)} tasks on {queues.distinct().count()} queues done, none lost, none run "
            "more often than it should"
        )

    def _expect_runs(self, each: Planned) -> None:
        runs = len(self._runs_of(each))
        _expect(runs == each.runs, f"{each} ran {runs} times, not {each.runs}")

    def _failed_for_good(self) -> str:
        bad = self._of("broken")
        for each in bad:
            _ended(each, TaskResultStatus.FAILED)
            _expect_errors(each, ["builtins.ValueError"] * each.runs)
            self._expect_runs(each)
        return f"{len(bad)} task failed for good, as planned, after {bad[0].runs} attempts"

    def _retried(self) -> str:
        flaky = self._of("flaky")
        for each in flaky:
            _expect_errors(each, ["builtins.ConnectionError"] * (each.runs - 1))
            for earlier, later in pairwise(self._runs_of(each)):
                pause = later.began - earlier.ended
                _expect(
                    pause >= BACKOFF - TOLERANCE,
                    f"{each} ran again after {pause:.3f} s, before its back-off of {BACKOFF} s",
                )
        return f"{len(flaky)} tasks failed twice, each waited {BACKOFF} s, then succeeded"

    def _resumed(self) -> str:
        [converted] = self._of("convert")
        result: Any = _result(converted)
        told = result.progress
        _expect(told is not None, f"{converted} has told no progress")
        _expect(told.percent == 100, f"{converted} has told {told} last")
        return (
            f"1 task failed half-way, resumed at its checkpoint, and told its progress: "
            f"{told.done} of {told.total} {told.text}"
        )

    def _cancelled(self) -> str:
        cancelled = [each for each in self.planned if each.is_cancelled]
        for each in cancelled:
            _expect_errors(each, ["steady_queue_core.errors.TaskCancelled"])
            self._expect_runs(each)
        return f"{len(cancelled)} task was cancelled while it ran"

    def _timed_out(self) -> str:
        [stalled] = self._of("stall")
        _expect_errors(stalled, ["steady_queue_core.errors.TaskTimeout"])
        [run] = self._runs_of(stalled)
        took = run.ended - run.began
        _expect(took < LATEST_END, f"{stalled} was ended after {took:.1f} s")
        return f"1 task that never ends was ended by its time-out of 0.5 s, after {took:.1f} s"

    def _delayed(self) -> str:
        late = []
        for each in self._of("remind"):
            enqueued_at, runs = _result(each).enqueued_at, self._runs_of(each)
            _expect(bool(runs), f"{each} did not run")
            assert enqueued_at is not None
            late.append(runs[0].began - (enqueued_at + DELAY).timestamp())
        _expect(
            min(late) >= -TOLERANCE, f"a delayed task started {-min(late) * 1000:.0f} ms too early"
        )
        _expect(
            max(late) <= LATEST.total_seconds(), f"a delayed task started {max(late):.1f} s late"
        )
        return (
            f"{len(late)} tasks delayed by {DELAY.total_seconds():g} s started on time, at worst "
            f"{max(0, max(late)) * 1000:.0f} ms late"
        )

    def _coroutines(self) -> str:
        runs = self._named("fetch")
        most = most_at_once(runs)
        _expect(
            most > self.threads,
            f"only {most} of {len(runs)} coroutines ran at once: no more than the worker has "
            f"threads ({self.threads})",
        )
        return (
            f"{len(runs)} coroutines ran, {most} of them at once (the worker has "
            f"{self.threads} threads)"
        )

    def _batch(self) -> str:
        _expect_status("batch", self.together.batch, "succeeded")
        packed, shipped = self._named("pack"), self._named("ship")
        _expect(len(packed) == PACKED, f"{len(packed)} jobs of the batch ran, not {PACKED}")
        _expect(len(shipped) == 1, f"the callback of the batch ran {len(shipped)} times")
        last = max(run.ended for run in packed)
        _expect(shipped[0].began >= last - TOLERANCE, "the callback ran before the batch had ended")
        told = Job.objects.get(task_path="demo.tasks.ship").return_value
        _expect(told == str(PACKED), f"the callback found {told} jobs, not {PACKED}")
        return f"a batch of {PACKED} tasks ended, and then its callback ran, once"

    def _workflow(self) -> str:
        _expect_status("workflow", self.together.workflow, "failed")
        ran = [(run.name, run.number) for run in self.runs if run.name in WORKFLOW]
        expected = [("weigh", WEIGHED), ("charge", 10 * WEIGHED), ("dun", 0)]
        _expect(ran == expected, f"the workflow ran {ran}, not {expected}")
        return "a workflow passed a result on, and took its branch for failures, not the other one"

    def _schedule(self) -> str:
        slots = list(RecurringExecution.objects.filter(task_key="tick").order_by("run_at"))
        jobs = Job.objects.in_bulk([slot.job_id for slot in slots])
        done = [slot for slot in slots if slot.job_id in jobs and jobs[slot.job_id].finished_at]
        runs = self._named("tick")
        _expect(len(done) >= TICKS, f"the schedule ran {len(done)} times, not {TICKS}")
        _expect(len(jobs) == len(slots), f"{len(slots)} slots have {len(jobs)} jobs")
        # The stop may come between the enqueue of the last one and its run.
        _expect(
            len(slots) - len(done) <= 1, f"{len(slots) - len(done)} scheduled tasks did not run"
        )
        _expect(len(runs) == len(done), f"{len(done)} scheduled tasks ran {len(runs)} times")
        for earlier, later in pairwise(slots):
            _expect(
                later.run_at - earlier.run_at == TICK,
                f"the schedule left out a slot between {earlier.run_at} and {later.run_at}",
            )
        return f"the schedule of {TICK.total_seconds():g} s ran {len(runs)} times, no slot left out"

    def _end(self) -> str:
        code = self.supervisor_exit
        _expect(code == 0, f"the supervisor ended with {code} rather than 0")
        left = Process.objects.count()
        _expect(left == 0, f"{left} processes are still registered")
        _expect(not ClaimedExecution.objects.exists(), "jobs are still claimed by a process")
        ready = ReadyExecution.objects.exclude(queue_name="clock").count()
        _expect(ready == 0, f"{ready} jobs were left unrun")
        return "the supervisor stopped at TERM and left nothing behind"


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Different(otherwise)


def _ended(each: Planned, status: TaskResultStatus) -> TaskResult:
    """Return the result of a task, which has to have this status."""
    result = _result(each)
    _expect(result.status == status, f"{each} is {result.status.name}, not {status.name}")
    return result


def _expect_status(kind: str, batch: BatchHandle, status: str) -> None:
    batch.refresh()
    _expect(batch.status == status, f"the {kind} is {batch.status}, not {status}")


def _expect_errors(each: Planned, expected: Iterable[str]) -> None:
    found = [error.exception_class_path for error in _result(each).errors]
    _expect(
        found == list(expected),
        f"{each} has the errors {', '.join(found) or 'none'}",
    )


def _result(each: Planned) -> TaskResult:
    try:
        return task_backends["default"].get_result(each.result_id)
    except TaskResultDoesNotExist:
        raise Different(f"{each} is lost") from None
