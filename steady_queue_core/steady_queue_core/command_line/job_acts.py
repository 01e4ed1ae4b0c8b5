"""The acts on jobs: retry, discard, cancel, run now, move, reschedule, copy."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..dialects.database import Database
from ..models import Job
from ..models.job_queryset import JobQuerySet
from ..models.operations import cancel, discard, move, reschedule, retry, run_now
from .change_jobs import ChangeJobs
from .exit_codes import WRONG_USAGE, Refusal
from .formats import duration_option
from .job_filter import future_option

#: More jobs than one transaction of the command line changes.
MOST_AT_ONCE = 2**31


class Retry(ChangeJobs):
    """Failed jobs run again, with all their attempts."""

    name, past = "retry", "retried"
    help = "run failed jobs again"
    executions = retry.STATES

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        return jobs.retry_failed()

    def on_one(self, job: Job) -> bool:
        return job.retry()


class Discard(ChangeJobs):
    """Jobs that wait or have failed are deleted."""

    name, past = "discard", "discarded"
    help = "delete jobs that wait or have failed"
    executions = discard.STATES
    warning = "This cannot be undone."
    asks_always = True

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        return jobs.discard()

    def on_one(self, job: Job) -> bool:
        return bool(Job.objects.using(job._state.db).filter(pk=job.pk).discard())


class Cancel(ChangeJobs):
    """Jobs that wait fail, those that run are interrupted."""

    name, past = "cancel", "cancelled"
    help = "let waiting jobs fail, and interrupt running ones"
    executions = cancel.STATES
    warning = "Running tasks are interrupted."

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        return jobs.cancel()

    def on_one(self, job: Job) -> bool:
        return job.cancel()


class RunNow(ChangeJobs):
    """Scheduled jobs become due, blocked ones exceed their limit."""

    name, past = "run-now", "dispatched"
    help = "run scheduled jobs at once, and blocked ones beyond their limit"
    executions = run_now.STATES

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        return jobs.run_now()

    def on_one(self, job: Job) -> bool:
        return job.run_now()


class Move(ChangeJobs):
    """Jobs that wait get another queue or priority."""

    name, past = "move", "moved"
    help = "give jobs that wait another queue or priority"
    executions = move.STATES
    reorders = True
    #: The arguments of ``move_to()``.
    changes: Mapping[str, Any]

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--to-queue", metavar="NAME", help="the queue that they get")
        parser.add_argument(
            "--to-priority",
            type=int,
            metavar="N",
            help="the priority that they get, from -100 to 100; larger runs first",
        )

    def configure(self, options: Mapping[str, Any], using: str) -> None:
        self.changes = {"queue_name": options["to_queue"], "priority": options["to_priority"]}
        if not any(each is not None for each in self.changes.values()):
            raise Refusal("Say where to: --to-queue, --to-priority, or both.", WRONG_USAGE)
        try:
            move.changes_of(**self.changes)
        except ValueError as error:
            raise Refusal(str(error), WRONG_USAGE) from error

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        return jobs.move_to(**self.changes)

    def on_one(self, job: Job) -> bool:
        return job.move_to(**self.changes)


class Reschedule(ChangeJobs):
    """Jobs that wait are due at another time."""

    name, past = "reschedule", "rescheduled"
    help = "let jobs that wait be due at another time"
    executions = reschedule.STATES
    reorders = True
    due: datetime

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--in",
            dest="delay",
            type=duration_option,
            metavar="TIME",
            help="so much later",
        )
        parser.add_argument(
            "--at", type=future_option, metavar="TIME", help="at a time such as 2026-01-31T12:00"
        )

    def configure(self, options: Mapping[str, Any], using: str) -> None:
        given = [each for each in (options["delay"], options["at"]) if each is not None]
        if len(given) != 1:
            raise Refusal("Say when: either --in or --at.", WRONG_USAGE)
        try:
            self.due = reschedule.due_at(Database.of(using), given[0])
        except ValueError as error:
            raise Refusal(str(error), WRONG_USAGE) from error

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        return jobs.reschedule(self.due)

    def on_one(self, job: Job) -> bool:
        return job.reschedule(self.due)


class Copy(ChangeJobs):
    """Jobs are enqueued again, whatever has become of them."""

    name, past = "copy", "enqueued again"
    help = "enqueue jobs again, with the same calls"
    warning = "Each becomes a new job."
    reorders = True

    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        # In one transaction: a part of them that is tried again would be there twice.
        return jobs.enqueue_copies(batch_size=MOST_AT_ONCE)

    def on_one(self, job: Job) -> bool:
        return job.enqueue_copy() is not None
