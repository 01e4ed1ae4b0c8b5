"""How long tasks take, as the statistics of the last day know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta

from ..models import Statistic
from ..statistics import histogram
from ..statistics.spans import HOUR, MINUTE, RECENT_HOUR
from ..statistics.tally import number
from .patient import Patient

#: Minutes of the past; rows that are read of them, those of the last minutes first.
PAST, MOST = 24 * 60, 3_000
#: Fewer attempts tell nothing of how long the next one takes.
LEAST = 20
#: So many of the attempts took no longer than usual.
SHARE = 0.95


def usual_times(patient: Patient, task_paths: Collection[str]) -> dict[str, timedelta]:
    """Return how long the attempts at these tasks take as a rule, as far as that is known."""
    since = int(patient.present.timestamp() // 60) - PAST
    counted: dict[str, Counter[int]] = {}
    longest: Counter[str] = Counter()
    for span in (MINUTE, RECENT_HOUR, HOUR) if task_paths else ():
        rows = Statistic.objects.using(patient.using).filter(span=span, minute__gte=since)
        columns = ("task_path", "run_histogram", "run_max")
        for path, text, most in rows.order_by("-minute").values_list(*columns)[:MOST]:
            if path in task_paths:
                counts = counted.setdefault(path, Counter())
                counts.update(dict(enumerate(histogram.read(text))))
                longest[path] = max(longest[path], number(most))
    return {
        path: timedelta(milliseconds=_most(counts, longest[path]))
        for path, counts in counted.items()
        if counts.total() >= LEAST
    }


def times_usual(age: timedelta, usual: timedelta | None) -> float:
    """Return how many times as long as usual something takes; 0.0 if that is not known."""
    return age / usual if usual else 0.0


def _most(counts: Counter[int], longest: int) -> int:
    before, wanted = 0, SHARE * counts.total()
    for position, bound in enumerate(histogram.BOUNDS):
        before += counts[position]
        if before >= wanted:
            return min(bound, longest) if longest else bound
    return longest
