"""``limits``: the keys whose jobs are limited, and how far they are."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..features.rates.shown import rate_in_words
from ..listings.limits import (
    ListedRate,
    ListedSemaphore,
    listed_rates,
    listed_semaphores,
)
from ..listings.wording import moment
from .context import Context
from .databases import described, headings
from .exit_codes import DONE
from .formats import counted, instant, positive_option
from .subcommand import Subcommand
from .table import table


class Limits(Subcommand):
    """Concurrency keys and rate limits that are in use."""

    name = "limits"
    help = "list the concurrency keys and rate limits that are in use"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--limit", type=positive_option, default=100, help="most keys of each kind (100)"
        )
        parser.add_argument("--after", metavar="KEY", help="only keys that come after this one")

    def run(self, context: Context) -> int:
        databases = context.databases.to_read()
        limit, after = context.options["limit"], context.options["after"]
        found = [Found.of(using, limit, after) for using in databases]
        context.show({"databases": [each.as_json() for each in found]}, _lines(databases, found))
        return DONE


@dataclass(frozen=True)
class Found:
    """The limits of one database."""

    using: str
    semaphores: list[ListedSemaphore]
    rates: list[ListedRate]
    #: Whether there are more keys.
    has_more: bool

    @classmethod
    def of(cls, using: str, limit: int, after: str | None) -> Found:
        semaphores = listed_semaphores(using, limit + 1, after)
        rates = listed_rates(using, limit + 1, after)
        has_more = max(len(semaphores), len(rates)) > limit
        return cls(using, semaphores[:limit], rates[:limit], has_more)

    def as_json(self) -> dict[str, Any]:
        return {
            **described(self.using),
            "concurrency": [
                {
                    "key": each.key,
                    "in_use": each.in_use,
                    "limit": each.limit,
                    "blocked": counted(each.waiting),
                }
                for each in self.semaphores
            ],
            "rates": [
                {
                    "key": each.key,
                    "rate": None if each.rate is None else rate_in_words(each.rate),
                    "slots_taken": each.slots_taken,
                    "free_at": instant(each.free_at),
                }
                for each in self.rates
            ],
            "has_more": self.has_more,
        }

    def lines(self) -> Iterator[str]:
        if not (self.semaphores or self.rates):
            yield "No limit is in use."
        if self.semaphores:
            held = [(e.key, f"{e.in_use} of {e.limit}", e.waiting.text) for e in self.semaphores]
            yield from table(("concurrency key", "in use", "blocked"), held)
        if self.rates:
            paced = [
                (
                    each.key,
                    "" if each.rate is None else rate_in_words(each.rate),
                    each.slots_taken,
                    moment(each.free_at) or "now",
                )
                for each in self.rates
            ]
            yield from table(("rate key", "rate", "slots taken", "next free slot"), paced)
        if self.has_more:
            yield "There are more keys: see --limit and --after."


def _lines(databases: list[str], found: list[Found]) -> Iterator[str]:
    for (_, heading), each in zip(headings(databases), found, strict=True):
        yield from heading
        yield from each.lines()
