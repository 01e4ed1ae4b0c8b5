"""Changing many jobs in batches, each in its own transaction."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ..dialects.database import Database
from ..listings.counts import BoundedCount
from ..listings.selection import Selection, insisting
from ..models import Job
from ..models.job_queryset import JobQuerySet
from .context import Context
from .exit_codes import DONE, INTERRUPTED
from .formats import in_words, positive_option
from .progress import Outcome, take_steps

#: What is done to many jobs; returns how many it has changed.
Act = Callable[[JobQuerySet[Job]], int]
#: Jobs of a batch, unless the options say otherwise.
BATCH = 500
#: Jobs that a count looks at where no index serves it.
COUNTED = 100_000


def add_batch_options(parser: ArgumentParser) -> None:
    """Add the options of what changes many jobs: ``dry_run``, ``yes`` and ``batch_size``."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--batch-size",
        type=positive_option,
        default=BATCH,
        metavar="N",
        help=f"jobs that one transaction changes ({BATCH})",
    )


def apply(
    context: Context,
    words: str,
    act: Act,
    selection: Selection,
    size: int,
    total: BoundedCount | None = None,
) -> Outcome:
    """Do something to all jobs of a selection, until Ctrl-C. ``total`` is their number, as far as
    that is known."""
    known = total.number if total is not None and total.exact else None
    return take_steps(context, words, known, _steps(act, selection, size))


def _steps(act: Act, selection: Selection, size: int) -> Iterator[Callable[[], int]]:
    database = Database.of(selection.using)
    for ids in selection.parts(size):
        jobs: Any = Job.objects.using(selection.using).filter(pk__in=ids)
        # Also of a part without jobs, for which time has passed.
        yield partial(insisting, database, partial(act, jobs)) if ids else int


def report(context: Context, data: Mapping[str, Any], words: str, outcome: Outcome) -> int:
    """Show what has become of an operation; return the exit status."""
    text = f"{words} {in_words(outcome.changed)}"
    data = {**data, "count": outcome.changed, "exact": True}
    if outcome.was_interrupted:
        context.show(data, problems=[f"{text}, then interrupted: there may be more."])
        return INTERRUPTED
    context.show(data, [f"{text}."])
    return DONE
