"""How many members of batches have ended: of those that go on, counted up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..dialects import MemberState
from ..dialects.membership import FAILURES
from ..listings.counts import BoundedCount, count_each
from ..models import BatchMember

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
