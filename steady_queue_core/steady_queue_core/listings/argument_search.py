"""Text that columns contain, and arguments as far as these are shown: without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.db.models.functions import Length, Lower
from django.db.models.lookups import Contains

from .damage import read_each
from .job_rows import LARGE
from .payloads import MOST_READ, Redactor, shown_call

#: Characters of arguments that a page reads, before and after they are decompressed.
MOST_CHARACTERS = 4 * 2**20
#: Jobs whose arguments are measured first, to see how long they are.
FIRST_MEASURED = 200


def contains(text: str, *columns: str) -> Q:
    """Return the condition that one of the columns contains ``text``, ignoring case: of letters
    beyond ASCII, as far as the database knows their case."""
    found = Q()
    for column in columns:
        found |= Q(**{f"{column}__icontains": text})
        # MySQL compares in the collation of the column, which is exact.
        found |= Q(Contains(Lower(column), text.lower()))
    return found


#: The columns that may hold megabytes and that an argument search does not need.
UNUSED = tuple(each for each in LARGE if each != "arguments")


class Examined(NamedTuple):
    """The jobs that match among the first ones of a sequence."""

    matching: set[int]
    #: How many were examined: fewer than all if their arguments are long.
    number: int


@dataclass(frozen=True)
class ArgumentSearch:
    """A text to find in the arguments of jobs, ignoring case.

    It is compared with what the page of a job shows: what is hidden there, is too long or cannot be
    decoded, is never found. Otherwise a user could guess a secret piece by piece.
    """

    text: str
    #: Whether the user may see the arguments of a job.
    may_see: Callable[[Any], bool] = lambda job: True

    def examine(self, jobs: QuerySet[Any], ids: Sequence[int]) -> Examined:
        """Look at those of ``jobs`` that have the first ids: as many as the size of their arguments
        allows."""
        near = self._affordable(jobs, ids)
        read = [each for each, size in near if size is not None and size <= MOST_READ]
        rows = read_each(jobs.select_related(None).defer(*UNUSED), read)
        matching: set[int] = set()
        decoded, count, redactor = 0, 0, Redactor()
        for job_id, _ in near:
            count += 1
            row = rows.get(job_id)
            if row is None:
                continue
            call = shown_call(row, redactor=redactor)
            decoded += call.size
            if self._is_in(call.texts()) and self.may_see(row):
                matching.add(job_id)
            if decoded >= MOST_CHARACTERS:
                break
        return Examined(matching, count)

    def _affordable(self, jobs: QuerySet[Any], ids: Sequence[int]) -> list[tuple[int, int | None]]:
        """Return the first ids, each with the characters to read of its job; ``None``: there is no
        such job."""
        measured = jobs.order_by().annotate(size=Length("arguments"))
        found: list[tuple[int, int | None]] = []
        start, count, read = 0, FIRST_MEASURED, 0
        while start < len(ids):
            # To measure a text, most servers read all of it.
            part = ids[start : start + count]
            sizes = dict(measured.filter(pk__in=part).values_list("pk", "size"))
            for each in part:
                size = sizes.get(each)
                read += size if size is not None and size <= MOST_READ else 0
                if found and read > MOST_CHARACTERS:
                    return found
                found.append((each, size))
            start, count = start + count, len(ids)
        return found

    def _is_in(self, texts: Iterator[str]) -> bool:
        return any(wanted in text.casefold() for text in texts for wanted in self._wanted)

    @cached_property
    def _wanted(self) -> set[str]:
        """The text as it was typed, and as it is shown within quotes: with escapes."""
        return {self.text.casefold(), repr(self.text)[1:-1].casefold()}
