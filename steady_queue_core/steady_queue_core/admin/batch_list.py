"""The list of batches: its pages, its columns, and how many members of each have ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..batches.batch import KIND as BATCH
from ..batches.handle import BatchStatus, status_of
from ..dialects import MemberState
from ..dialects.membership import CHAIN, FAILURES, GROUP, WORKFLOW
from ..listings.counts import BoundedCount, count_each
from ..listings.damage import read_in_order
from ..listings.job_listing import LOOKED_AT
from ..listings.keyset import START, Cursor, Key, Order, Page, split_page, unfinished
from ..listings.visibility import is_unrestricted
from ..models import BatchMember, JobBatch
from ..models.job import parse_job_id
from . import texts
from .columns import attribute, column

KINDS = (BATCH, CHAIN, GROUP, WORKFLOW)
GOING_ON = Q(finished_at=None)
STATUSES = {
    BatchStatus.OPEN: Q(started_at=None) & GOING_ON,
    BatchStatus.RUNNING: Q(started_at__isnull=False) & GOING_ON,
    BatchStatus.SUCCEEDED: ~GOING_ON & Q(cancelled_at=None) & (Q(failed=None) | Q(failed=0)),
    BatchStatus.FAILED: ~GOING_ON & Q(cancelled_at=None) & ~Q(failed=0) & ~Q(failed=None),
    BatchStatus.CANCELLED: ~GOING_ON & ~Q(cancelled_at=None),
}
#: Columns that may hold megabytes.
LARGE = ("metadata", "callbacks")


@dataclass(frozen=True)
class BatchListing:
    """The ``visible`` batches that match the filters and the search.

    An index serves the search for an id, and finds those that have not ended. All else is checked
    on a bounded number of batches per page.
    """

    visible: QuerySet[Any]
    #: Filter values by parameter name: a status and a kind.
    given: Mapping[str, str] = field(default_factory=dict)
    #: An id, or a part of the description.
    search: str = ""

    @property
    def using(self) -> str:
        return self.visible.db

    @property
    def order(self) -> Order:
        return Order(JobBatch, ("-id",))

    @cached_property
    def queryset(self) -> QuerySet[Any]:
        return self.visible.filter(self._served, self._others)

    def page(self, cursor: str, size: int) -> Page:
        start = self.order.parse(cursor)
        limit = LOOKED_AT if self._examines else size + 1
        keys = self.order.keys(self._rows, start, limit)
        matching = self._matching(keys)
        shown, page = split_page([key for key in keys if key[0] in matching], start, size)
        if self._examines and len(keys) >= limit and len(matching) <= size:
            page = unfinished(page, start, keys[-1])
        rows, damaged = read_in_order(self.visible.defer(*LARGE), [key for (key,) in shown])
        return page._replace(rows=rows, damaged=damaged)

    def count(self) -> BoundedCount | None:
        if self._examines:
            return None
        [count] = count_each(self.using, [self._rows.order_by()])
        return count

    def ids(self) -> Iterator[list[int]]:
        """Yield the ids of all matching batches in parts, which may be empty."""
        cursor = START
        while keys := self.order.keys(self._rows, cursor, LOOKED_AT):
            matching = self._matching(keys)
            yield [key[0] for key in keys if key[0] in matching]
            cursor = Cursor(keys[-1])

    @cached_property
    def _rows(self) -> QuerySet[Any]:
        """What an index finds."""
        rows: QuerySet[Any] = JobBatch._default_manager.using(self.using)
        return rows.filter(self._served)

    def _matching(self, keys: list[Key]) -> set[int]:
        found = {key[0] for key in keys}
        if not self._examines:
            return found
        rows = self.visible.order_by().filter(self._others, pk__in=found)
        return set(rows.values_list("pk", flat=True))

    @property
    def _examines(self) -> bool:
        return bool(self._others) or not is_unrestricted(self.visible)

    @cached_property
    def _served(self) -> Q:
        condition = Q()
        if self.given.get("status") in (BatchStatus.OPEN, BatchStatus.RUNNING):
            condition &= GOING_ON
        return condition if self._id is None else condition & Q(pk=self._id)

    @cached_property
    def _others(self) -> Q:
        condition = Q()
        if status := self.given.get("status"):
            condition &= STATUSES[BatchStatus(status)]
        if kind := self.given.get("kind"):
            condition &= Q(kind=kind)
        if self.search and self._id is None:
            condition &= Q(description__contains=self.search)
        return condition

    @cached_property
    def _id(self) -> int | None:
        return parse_job_id(self.search.removeprefix("#"))


ENDED_WELL = tuple(
    state for state in MemberState if state is not MemberState.PENDING and state not in FAILURES
)


class Tally(NamedTuple):
    """The members of a batch."""

    done: BoundedCount
    total: BoundedCount
    failed: BoundedCount

    @classmethod
    def of(cls, pending: BoundedCount, well: BoundedCount, failed: BoundedCount) -> Tally:
        """Return the tally of members that have not ended, have ended well, and have failed."""
        done = BoundedCount.sum_of((well, failed))
        return cls(done, BoundedCount.sum_of((done, pending)), failed)

    @property
    def text(self) -> SafeString:
        """A bar where the numbers are exact, and the numbers."""
        words = f"{self.done.text} of {self.total.text}"
        if self.failed.number:
            words += f", {self.failed.text} failed"
        if not self.total.exact or self.total.number <= 0:
            return format_html("{}", words)
        share = f"{self.done.number / self.total.number:.4f}"
        return format_html('<progress max="1" value="{}"></progress> {}', share, words)


def tally_each(using: str, batches: Sequence[Any], cap: int | None = None) -> list[Tally]:
    """Return the tallies of batches, in one statement: those of ended ones are stored with them."""
    going_on = [batch for batch in batches if batch.finished_at is None]
    members = BatchMember.objects.using(using).order_by()
    parts = ((MemberState.PENDING,), ENDED_WELL, FAILURES)
    selections = [
        members.filter(batch_id=batch.pk, state__in=states)
        for batch in going_on
        for states in parts
    ]
    counts = iter(count_each(using, selections, cap=cap))
    counted = {batch.pk: Tally.of(next(counts), next(counts), next(counts)) for batch in going_on}
    return [counted.get(batch.pk) or _stored(batch) for batch in batches]


def _stored(batch: Any) -> Tally:
    total = BoundedCount(batch.total or 0)
    return Tally(total, total, BoundedCount(batch.failed or 0))


number = attribute("id", "pk", "#{}".format)
description = attribute("description", "description")
kind = attribute("kind", "kind", texts.name)


@column("status")
def status(row: Any) -> str:
    found = status_of(row).value
    is_ending = row.cancelled_at is not None and row.finished_at is None
    return f"{found}, being cancelled" if is_ending else found


progress = attribute("progress", "tally.text", lambda text: text)
created = attribute("created", "created_at", texts.moment)
finished = attribute("finished", "finished_at", texts.moment)


COLUMNS = (number, description, kind, status, progress, created, finished)
