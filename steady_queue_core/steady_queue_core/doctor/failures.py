"""Many jobs that fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from ..dialects import portable
from ..listings.counts import count_each
from ..listings.wording import name
from ..models import FailedExecution, Job
from .finding import Finding, warning
from .patient import Patient
from .words import many

RECENT = timedelta(hours=1)
#: Fewer failures are not many, and a smaller share of the jobs that have ended is not either.
LEAST, SHARE = 10, 0.5
MOST_READ = 1_000


def failing(patient: Patient) -> Iterator[Finding]:
    since = portable.storable(patient.present - RECENT)
    failed = FailedExecution.objects.using(patient.using).filter(created_at__gte=since)
    ended = Job.objects.using(patient.using).filter(finished_at__gte=since)
    counts = count_each(
        patient.using, [failed.order_by("-created_at"), ended.order_by("-finished_at")]
    )
    failures, endings = counts
    if failures.number < LEAST or failures.number < SHARE * endings.number:
        return
    latest = failed.order_by("-created_at").values_list("exception_class", flat=True)[:MOST_READ]
    errors = Counter(latest)
    [(commonest, number)] = errors.most_common(1) or [("", 0)]
    what = f", most of them with {name(commonest)}" if 2 * number > errors.total() else ""
    yield warning(
        "failures-many",
        f"{many(failures, 'job has', 'jobs have')} failed within an hour, of {endings.text} that "
        f"have ended{what}.",
        "See their errors in the admin. Once the cause is mended, retry them there.",
    )


EXAMINATIONS = (failing,)
