"""The jobs of a state: keys from an index, then the rows of those keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet

from ..models.job import MAX_ID
from .corrupt_rows import ERRORS, is_damage
from .counts import Tally, tallies
from .job_rows import read_jobs
from .keyset import START, Key, Order, Place
from .listing import Page, page_of
from .scope import Scope
from .states import State

#: Jobs that a page looks at where no index serves its filters.
LOOKED_AT = 5_000
#: How many times as many rows are looked at where some turn out to be in another state.
SPARE = 10


@dataclass(frozen=True)
class JobListing:
    """The jobs of ``state`` in ``scope`` that match the filters and the search.

    Filters that no index serves, and the scope, are tried on a bounded number of jobs for each
    page.
    """

    scope: Scope
    state: State
    #: The filters by their parameters.
    given: dict[str, str] = field(default_factory=dict)
    #: An id, or the path of a task.
    search: str = ""
    #: How many jobs each state has.
    counts: dict[str, Tally] = field(default_factory=dict)

    @property
    def using(self) -> str:
        return self.scope.jobs.db

    @cached_property
    def queryset(self) -> QuerySet[Any]:
        jobs = self.scope.jobs
        if self.state.relation is None:
            rows = jobs.filter(self.state.rows, self._jobs)
            return rows.exclude(pk__in=self._others().values("pk")) if self.state.unless else rows
        return jobs.filter(self._jobs, pk__in=self.rows.values("pk"))

    @cached_property
    def rows(self) -> QuerySet[Any]:
        """What an index finds: the rows of the state, without the filters that it cannot serve."""
        rows = self.state.selected(self.using)
        if self._id is not None:
            rows = rows.filter(pk=self._id)
        for parameter, (column, _) in self._narrowings:
            rows = rows.filter(**{column: self.given[parameter]})
        return rows

    @cached_property
    def order(self) -> Order:
        return next((order for _, (_, order) in self._narrowings), self.state.order)

    def page(self, place: str, size: int) -> Page:
        try:
            return self._page(self.order, place, size)
        except ERRORS as error:
            if not is_damage(error):
                raise
            # Somebody has damaged an instant that the rows are ordered by.
            return self._page(self._by_id, place, size)

    def _page(self, order: Order, place: str, size: int) -> Page:
        start = order.read(place)
        limit = LOOKED_AT if self._looks else size + 1
        if self.state.unless:
            limit = max(limit, SPARE * size)
        keys = order.keys(self.rows, start, limit)
        matching = self._matching(keys)
        shown, page = page_of([key for key in keys if key[-1] in matching], start, size)
        if len(keys) >= limit and len(matching) <= size and not self._matches_all:
            page = self._unfinished(page, start, keys[-1])
        return page._replace(rows=self._read(shown))

    def tally(self) -> Tally | None:
        if self.state.name in self.counts and not (self.given or self.search):
            return self.counts[self.state.name]
        if not self._matches_all:
            return None
        [tally] = tallies(self.using, [self.rows.order_by()])
        return tally

    def batches(self) -> Iterator[list[int]]:
        """Yield the ids of all that match, some at a time; the list may be empty."""
        order = self.order if self._narrowings else self._by_id
        place = START
        while keys := order.keys(self.rows, place, LOOKED_AT):
            matching = self._matching(keys)
            yield [key[-1] for key in keys if key[-1] in matching]
            place = Place(keys[-1])

    @property
    def _by_id(self) -> Order:
        return Order(self.state.order.model, (self.state.order.columns[-1].lstrip("-"),))

    def _matching(self, keys: list[Key]) -> set[int]:
        found = {key[-1] for key in keys}
        if self._looks:
            jobs = self.scope.jobs.order_by().filter(self._jobs, pk__in=found)
            found = set(jobs.values_list("pk", flat=True))
        if self.state.unless:
            found -= set(self._others().filter(pk__in=found).values_list("pk", flat=True))
        return found

    def _others(self) -> QuerySet[Any]:
        """Return the rows of jobs that look as if they were in this state, but are in another."""
        assert self.state.unless is not None
        return self.state.unless._default_manager.using(self.using)

    def _read(self, keys: list[Key]) -> list[Any]:
        return read_jobs(self.scope.jobs, self.state, [key[-1] for key in keys])

    @staticmethod
    def _unfinished(page: Page, start: Place, last: Key) -> Page:
        if start.backwards:
            return page._replace(previous=Place(last, backwards=True), unfinished=True)
        return page._replace(following=Place(last), unfinished=True)

    @property
    def _matches_all(self) -> bool:
        """Whether an index serves all that is asked for."""
        return not self._looks and self.state.unless is None

    @property
    def _looks(self) -> bool:
        """Whether the jobs that an index finds have to be looked at."""
        return bool(self._jobs) or not self.scope.is_whole

    @cached_property
    def _jobs(self) -> Q:
        """What is asked of the jobs that no index finds."""
        served = {parameter for parameter, _ in self._narrowings}
        columns = {"queue": "queue_name", "task": "task_path", "key": "concurrency_key"}
        asked = {
            columns[parameter]: value
            for parameter, value in self.given.items()
            if parameter not in served
        }
        if self.search and self._id is None:
            ends = Q(task_path__endswith=f".{self.search}")
            return Q(**asked) & (Q(task_path=self.search) | ends)
        return Q(**asked)

    @property
    def _narrowings(self) -> list[tuple[str, tuple[str, Order]]]:
        return [each for each in self.state.narrowed.items() if each[0] in self.given]

    @property
    def _id(self) -> int | None:
        text = self.search.removeprefix("#")
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            return None
        return min(int(text), MAX_ID)
