"""``jobs``: jobs by state, queue, task, batch, time and error."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..listings.job_listing import JobListing
from .context import Context
from .databases import described, headings
from .exit_codes import DONE, WRONG_USAGE, Refusal
from .formats import positive_option
from .job_filter import add_filters, listing_of, text_option
from .job_summary import HEADINGS, as_json, as_row
from .subcommand import Subcommand
from .table import table

#: Pages that are searched for jobs which no index finds, before the search says how far it came.
MOST_PAGES = 20


class Jobs(Subcommand):
    """Jobs, the newest first; in one state, in the order of that."""

    name = "jobs"
    help = "list jobs by state, queue, task, batch, time and error"

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_filters(parser)
        parser.add_argument(
            "--search",
            type=text_option,
            metavar="TEXT",
            help="jobs with this in the path of the task; with --state failed, also in the error",
        )
        parser.add_argument(
            "--limit", type=positive_option, default=50, help="most jobs that are listed (50)"
        )
        parser.add_argument(
            "--after", default="", metavar="CURSOR", help="go on where an earlier list has ended"
        )

    def run(self, context: Context) -> int:
        options = context.options
        if options["after"]:
            databases = [context.databases.to_change()]
        else:
            databases = context.databases.to_read()
        listings = {using: listing_of(options, using) for using in databases}
        if options["after"]:
            _require_cursor(options["after"], *listings.values())
        found = [
            Found.of(using, listing, options["after"], options["limit"])
            for using, listing in listings.items()
        ]
        context.show({"databases": [each.as_json() for each in found]}, _lines(databases, found))
        return DONE


@dataclass(frozen=True)
class Found:
    """The jobs of one database."""

    using: str
    jobs: list[Any]
    #: Where the list goes on; empty: this is its end.
    following: str
    #: Whether it ends early, because too many jobs had to be looked at.
    is_unfinished: bool

    @classmethod
    def of(cls, using: str, listing: JobListing, cursor: str, limit: int) -> Found:
        jobs: list[Any] = []
        following, unfinished = cursor, False
        for _ in range(MOST_PAGES):
            page = listing.page(following, limit - len(jobs))
            jobs += page.rows
            following, unfinished = str(page.following or ""), page.unfinished
            if len(jobs) >= limit or not (following and unfinished):
                break
        return cls(using, jobs, following, unfinished and len(jobs) < limit)

    def as_json(self) -> dict[str, Any]:
        return {
            **described(self.using),
            "jobs": [as_json(job) for job in self.jobs],
            "next": self.following or None,
            "unfinished": self.is_unfinished,
        }

    def lines(self) -> Iterator[str]:
        if self.jobs:
            yield from table(HEADINGS, [as_row(job) for job in self.jobs])
        else:
            yield "No such job was found so far." if self.is_unfinished else "There is no such job."
        if self.following:
            words = "The search goes on" if self.is_unfinished else "More"
            yield f"{words} with --after {shlex.quote(self.following)}"


def _require_cursor(cursor: str, listing: JobListing) -> None:
    if not listing.has_cursor(cursor):
        raise Refusal(
            f"--after {shlex.quote(cursor)} is not where this list goes on: give what the list "
            "before ended with, quoted and with the same filters, or leave it out to start anew.",
            WRONG_USAGE,
        )


def _lines(databases: list[str], found: list[Found]) -> Iterator[str]:
    for (_, heading), each in zip(headings(databases), found, strict=True):
        yield from heading
        yield from each.lines()
