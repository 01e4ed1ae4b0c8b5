"""``move``, ``reschedule`` and ``copy``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..dialects.database import Database
from ..models.operations.move import changes_of
from ..models.operations.reschedule import due_at
from .change_jobs import ChangeJobs
from .exit_codes import WRONG_USAGE, Refusal
from .formats import duration_option
from .job_action import COPY, JobAction, moving, rescheduling
from .job_filter import future_option

#: Until the options say when.
NEVER = datetime.max.replace(tzinfo=UTC)


class Move(ChangeJobs):
    """Jobs that wait get another queue or priority."""

    name = "move"
    help = "give jobs that wait another queue or priority"
    action = moving({})

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--to-queue", metavar="NAME", help="the queue that they get")
        parser.add_argument(
            "--to-priority",
            type=int,
            metavar="N",
            help="the priority that they get, from -100 to 100; larger runs first",
        )

    def configured(self, options: Mapping[str, Any], using: str) -> JobAction:
        changes = {"queue_name": options["to_queue"], "priority": options["to_priority"]}
        if not any(each is not None for each in changes.values()):
            raise Refusal("Say where to: --to-queue, --to-priority, or both.", WRONG_USAGE)
        try:
            changes_of(**changes)
        except ValueError as error:
            raise Refusal(str(error), WRONG_USAGE) from error
        return moving(changes)


class Reschedule(ChangeJobs):
    """Jobs that wait are due at another time."""

    name = "reschedule"
    help = "let jobs that wait be due at another time"
    action = rescheduling(NEVER)

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

    def configured(self, options: Mapping[str, Any], using: str) -> JobAction:
        given = [each for each in (options["delay"], options["at"]) if each is not None]
        if len(given) != 1:
            raise Refusal("Say when: either --in or --at.", WRONG_USAGE)
        try:
            return rescheduling(due_at(Database.of(using), given[0]))
        except ValueError as error:
            raise Refusal(str(error), WRONG_USAGE) from error


class Copy(ChangeJobs):
    """Jobs are enqueued again, whatever has become of them."""

    name = "copy"
    help = "enqueue jobs again, with the same calls"
    action = COPY
