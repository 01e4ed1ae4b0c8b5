"""``errors``: failed jobs, grouped by what they have in common."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from ..listings.counts import CAP
from ..listings.error_groups import ErrorGroup, ErrorGroups, error_groups
from ..listings.wording import line, moment, name
from .context import Context
from .databases import described, headings
from .exit_codes import DONE
from .formats import counted, in_words, instant, positive_option
from .job_filter import name_option
from .subcommand import Subcommand
from .table import table

HEADINGS = ("group", "failed", "first", "last", "task", "")
#: Characters of a message in a table.
MOST_SHOWN = 100


class Errors(Subcommand):
    """Groups of failures, the largest first."""

    name = "errors"
    help = "list failed jobs, grouped by task and error"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queue", type=name_option, help="failed jobs of this queue")
        parser.add_argument("--task", type=name_option, help="of the task with this path")
        parser.add_argument(
            "--limit", type=positive_option, default=20, help="most groups that are listed (20)"
        )

    def run(self, context: Context) -> int:
        options, databases = context.options, context.databases.to_read()
        given = {each: options[each] for each in ("queue", "task") if options[each] is not None}
        found = [error_groups(using, options["limit"], given) for using in databases]
        data = [
            {**described(using), **as_json(each)}
            for using, each in zip(databases, found, strict=True)
        ]
        context.show({"databases": data}, _lines(databases, found))
        return DONE


def as_row(group: ErrorGroup) -> list[object]:
    """Return the line of a group in a table with the ``HEADINGS``."""
    return [
        group.fingerprint,
        group.count.text,
        moment(group.first),
        moment(group.last),
        name(group.task_path),
        line(group.error)[:MOST_SHOWN],
    ]


def as_json(found: ErrorGroups) -> dict[str, Any]:
    """Return what JSON says of the groups of a database."""
    return {
        "groups": [
            {
                "group": each.fingerprint,
                "failed": counted(each.count),
                "first_at": instant(each.first),
                "last_at": instant(each.last),
                "task": each.task_path,
                "error": {"class": each.exception_class, "message": each.message},
                "job": each.job_id,
            }
            for each in found.groups
        ],
        "has_more": found.has_more,
        "complete": found.is_complete,
        "ungrouped": found.ungrouped,
    }


def _lines(databases: list[str], found: Sequence[ErrorGroups]) -> Iterator[str]:
    for (_, heading), each in zip(headings(databases), found, strict=True):
        yield from heading
        yield from _of(each)


def _of(found: ErrorGroups) -> Iterator[str]:
    if found.groups:
        yield from table(HEADINGS, [as_row(each) for each in found.groups])
    elif not found.ungrouped:
        yield "No such job has failed." if found.is_complete else "No such job has failed lately."
    if found.has_more:
        yield "There are more groups: see --limit."
    if found.ungrouped:
        verb = "belongs" if found.ungrouped == 1 else "belong"
        yield f"{in_words(found.ungrouped)} {verb} to no group."
    if not found.is_complete:
        yield f"Only the {CAP:,} newest failures were looked at."
