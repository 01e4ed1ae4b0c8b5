"""``clear``: deleting jobs that have ended long ago."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Q

from ..dialects import portable
from ..dialects.database import Database
from ..listings.job_listing import JobListing
from ..listings.selection import Selection
from ..listings.states import FAILED, FINISHED
from ..listings.visibility import VisibleJobs
from ..models import Job
from ..models.operations.clear import FailedJobs, FinishedJobs
from ..models.operations.sweep import Sweep
from .batched import COUNTED, add_batch_options, report
from .context import Context
from .databases import described
from .exit_codes import DONE
from .formats import duration_option, in_words, instant
from .progress import take_steps
from .question import confirm
from .subcommand import Subcommand


class Clear(Subcommand):
    """Finished jobs, and failed ones if wanted, are deleted by their age."""

    name = "clear"
    former = "prune"
    help = "delete jobs that have ended long ago"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=duration_option,
            required=True,
            metavar="TIME",
            help="jobs that ended so long ago: 24h, 7d",
        )
        parser.add_argument(
            "--include-failed", action="store_true", help="also jobs that have failed"
        )
        add_batch_options(parser)

    def run(self, context: Context) -> int:
        using, options = context.databases.to_change(), context.options
        before = Database.of(using).current_time() - options["older_than"]
        data = {**described(using), "before": instant(before), "dry_run": options["dry_run"]}
        count = _selection(using, before, options["include_failed"]).count(COUNTED)
        if options["dry_run"]:
            context.show(
                {**data, "count": count.number, "exact": count.exact},
                [f"At most {in_words(count.number, count.text)} would be deleted."],
            )
            return DONE
        if count.number or not count.exact:
            confirm(context, f"Delete {in_words(count.number, count.text)}? This cannot be undone.")
        steps = _steps(_sweeps(using, before, options), options["batch_size"])
        return report(context, data, "Deleted", take_steps(context, "Deleted", None, steps))


def _selection(using: str, before: datetime, include_failed: bool) -> Selection:
    """Return the jobs that may be deleted; some of them may have a retention of their own."""
    instant = portable.storable(before)
    visible = VisibleJobs(Job.objects.using(using))
    listings = [JobListing(visible, FINISHED, within=Q(finished_at__lt=instant))]
    if include_failed:
        listings.append(JobListing(visible, FAILED, within=Q(created_at__lt=instant)))
    return Selection(using, listings)


def _sweeps(using: str, before: datetime, options: Any) -> list[Sweep]:
    jobs = Job.objects.using(using)
    sweeps: list[Sweep] = [FinishedJobs(jobs, before)]
    if options["include_failed"]:
        sweeps.append(FailedJobs(jobs, before))
    return sweeps


def _steps(sweeps: list[Sweep], size: int) -> Iterator[Callable[[], int]]:
    for sweep in sweeps:
        while not sweep.exhausted:
            yield partial(sweep.clear, size)
