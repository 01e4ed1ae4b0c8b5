"""Listing of the jobs in a state: reads keys from an index, then only the rows of those keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from ..models.job import MAX_ID
from .argument_search import ArgumentSearch, Examined, contains
from .counts import BoundedCount, count_each
from .damage import suppress_damage
from .job_rows import read_jobs
from .keyset import Cursor, Key, Order, Page, split_page, unfinished
from .period import ALWAYS, Period
from .states import FAILED, State
from .visibility import VisibleJobs

#: Jobs that a page examines if no index serves its filters.
LOOKED_AT = 5_000
#: The columns of a job that filters compare, by parameter name.
COLUMNS = {
    "queue": "queue_name",
    "task": "task_path",
    "key": "concurrency_key",
    "error": "failedexecution__fingerprint",
}
#: Factor by which more rows are read if some may turn out to be in another state.
SPARE = 10


@dataclass(frozen=True)
class JobListing:
    """The ``visible`` jobs in a state that match the filters and the search.

    Filters without an index, and the restriction to visible jobs, are checked on a bounded number
    of jobs per page.
    """

    visible: VisibleJobs
    state: State
    #: Filter values by parameter name.
    given: dict[str, str] = field(default_factory=dict)
    #: A job id, or a part of a task's path; of failed jobs, also of the error.
    search: str = ""
    #: A text in the arguments, which have to be read for it.
    arguments: ArgumentSearch | None = None
    #: The time in which they have ended or were enqueued.
    period: Period = ALWAYS
    #: Number of jobs in each state.
    counts: dict[str, BoundedCount] = field(default_factory=dict)
    #: Further conditions on the jobs, which no index serves.
    also: Q = field(default_factory=Q)
    #: Further conditions on the rows of the state, which its order serves.
    within: Q = field(default_factory=Q)
    #: The id of the last job, if later ones do not belong to it.
    last: int | None = None
    #: Whether parts are in the order of ids: what is done with the jobs changes their places.
    by_id: bool = False

    @property
    def using(self) -> str:
        return self.visible.jobs.db

    @cached_property
    def queryset(self) -> QuerySet[Any]:
        jobs = self.visible.jobs
        if self.state.relation is None:
            rows = jobs.filter(self.state.rows, self._jobs)
            return rows.exclude(pk__in=self._others().values("pk")) if self.state.unless else rows
        return jobs.filter(self._jobs, pk__in=self.rows.values("pk"))

    @cached_property
    def rows(self) -> QuerySet[Any]:
        """The rows of the state that an index finds, without the filters that it cannot serve."""
        return self._selected("exact")

    def _selected(self, *comparisons: str) -> QuerySet[Any]:
        rows = self.state.selected(self.using).filter(self._within)
        if self._id is not None:
            rows = rows.filter(pk=self._id)
        if self.last is not None:
            rows = rows.filter(pk__lte=self.last)
        for parameter, (column, _) in self._indexed_filters:
            value = self.given[parameter]
            rows = rows.filter(**{f"{column}__{each}": value for each in comparisons})
        return rows

    @cached_property
    def order(self) -> Order:
        return next((order for _, (_, order) in self._indexed_filters), self.state.order)

    def has_cursor(self, cursor: str) -> bool:
        """Whether this is where a page of the list, or of one in the same order, may start."""
        if self.order.parse(cursor).key is not None:
            return True
        return self._by_id.parse(cursor).key is not None and self._is_damaged()

    def page(self, cursor: str, size: int) -> Page:
        with suppress_damage():
            return self._page(self.order, cursor, size)
        # A timestamp of the ordering was damaged by a manual edit.
        return self._page(self._by_id, cursor, size)

    def _is_damaged(self) -> bool:
        """Whether pages are in the order of ids instead."""
        with suppress_damage():
            self._page(self.order, "", 1)
            return False
        return True

    def _page(self, order: Order, cursor: str, size: int) -> Page:
        start = order.parse(cursor)
        limit = LOOKED_AT if self._examines else size + 1
        if self.state.unless:
            limit = max(limit, SPARE * size)
        keys = self._keys(order, start, limit)
        matching, examined = self._matching(keys)
        shown, page = split_page([key for key in keys if key[-1] in matching], start, size)
        is_cut = len(keys) >= limit or examined < len(keys)
        if is_cut and len(matching) <= size and not self._matches_all:
            page = unfinished(page, start, keys[examined - 1])
        ids = [key[-1] for key in shown]
        return page._replace(rows=read_jobs(self.visible.jobs, self.state, ids))

    def _keys(self, order: Order, cursor: Cursor, limit: int) -> list[Key]:
        if cursor.key is not None or not order.lead:
            return order.keys(self.rows, cursor, limit)
        # Where equal values are many, but none of them among the first rows, PostgreSQL would read
        # all that come before, in an index that has only the order.
        led = Order(order.model, (order.lead, *order.columns))
        return [key[1:] for key in led.keys(self._selected("gte", "lte"), cursor, limit)]

    def count(self) -> BoundedCount | None:
        narrowed = (
            self.given or self.search or self.arguments or self.last is not None
            or self._also or self._within
        )  # fmt: skip
        if self.state.name in self.counts and not narrowed:
            return self.counts[self.state.name]
        if not self._matches_all:
            return None
        [count] = count_each(self.using, [self.rows.order_by()])
        return count

    def batches(self) -> Iterator[list[int]]:
        """Yield the ids of all matching jobs in batches, which may be empty."""
        for ids, _ in self.parts("", LOOKED_AT):
            yield ids

    def parts(self, position: str, size: int) -> Iterator[tuple[list[int], str]]:
        """Yield the ids of all matching jobs after a position, ``""`` at first, in parts of at
        most ``size``, which may be empty; each with the position after it."""
        is_ordered = bool(self._indexed_filters or self._within) and not self.by_id
        order = self.order if is_ordered else self._by_id
        cursor = order.parse(position)
        while keys := self._keys(order, cursor, LOOKED_AT):
            matching, examined = self._matching(keys)
            found = [key for key in keys if key[-1] in matching]
            cursor = Cursor(keys[examined - 1])
            for start in range(0, max(1, len(found)), size):
                part, rest = found[start : start + size], found[start + size :]
                yield [key[-1] for key in part], str(Cursor(part[-1]) if rest else cursor)

    @property
    def _by_id(self) -> Order:
        return Order(self.state.order.model, (self.state.order.columns[-1].lstrip("-"),))

    def _matching(self, keys: list[Key]) -> Examined:
        """Return the ids that match among the first ``keys``, and the number of these."""
        ids = [key[-1] for key in keys]
        if not self._examines:
            found = set(ids)
            if self.state.unless:
                found -= set(self._others().filter(pk__in=ids).values_list("pk", flat=True))
            return Examined(found, len(keys))
        jobs = self.visible.jobs.order_by().filter(self._jobs)
        if self.state.unless:
            # No NOT EXISTS, for which MariaDB may read all that are in the other state.
            other = self._others().filter(pk=OuterRef("pk")).values("pk")[:1]
            jobs = jobs.alias(other=Subquery(other)).filter(other__isnull=True)
        if self.state is FAILED and (self.search or self._also):
            # Else PostgreSQL may read all failed executions, to look at the errors of some.
            jobs = jobs.filter(failedexecution__pk__in=ids)
        if self.arguments is not None:
            return self.arguments.examine(jobs, ids)
        return Examined(set(jobs.filter(pk__in=ids).values_list("pk", flat=True)), len(keys))

    def _others(self) -> QuerySet[Any]:
        """Return the rows of jobs that appear to be in this state, but are in another."""
        assert self.state.unless is not None
        return self.state.unless._default_manager.using(self.using)

    @property
    def _matches_all(self) -> bool:
        """Whether an index serves all conditions."""
        return not self._examines and self.state.unless is None

    @property
    def _examines(self) -> bool:
        """Whether the jobs that an index finds have to be examined."""
        is_narrowed = bool(self._jobs) or self.arguments is not None
        return is_narrowed or not self.visible.is_unrestricted

    @cached_property
    def _jobs(self) -> Q:
        """The conditions that no index serves."""
        served = {parameter for parameter, _ in self._indexed_filters}
        conditions = {
            COLUMNS[parameter]: value
            for parameter, value in self.given.items()
            if parameter not in served
        }
        if self.search and self._id is None:
            return Q(**conditions) & self._also & contains(self.search, *self._searched)
        return Q(**conditions) & self._also

    @cached_property
    def _also(self) -> Q:
        return self.also & self.period.also(self.state)

    @cached_property
    def _within(self) -> Q:
        return self.within & self.period.within(self.state)

    @property
    def _searched(self) -> Sequence[str]:
        """The columns that the search looks at."""
        error = ("failedexecution__exception_class", "failedexecution__message")
        return ("task_path", *(error if self.state is FAILED else ()))

    @property
    def _indexed_filters(self) -> list[tuple[str, tuple[str, Order]]]:
        return [each for each in self.state.indexed.items() if each[0] in self.given]

    @property
    def _id(self) -> int | None:
        """The job id that is searched for; one that is too large matches no job."""
        text = self.search.removeprefix("#")
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            return None
        return min(int(text), MAX_ID)
