"""Tasks of the next jobs that this code does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..listings.counts import BoundedCount
from ..listings.wording import name
from ..models import ReadyExecution, ScheduledExecution
from .finding import Finding, warning
from .patient import Patient
from .round import few

#: So many of the next jobs are looked at, of those that are ready and of those that are scheduled.
NEXT = 3_000


def of_next_jobs(patient: Patient) -> Iterator[Finding]:
    """Tasks of jobs that workers with this code would leave to others, or fail."""
    ready = ReadyExecution.objects.using(patient.using).order_by("rank", "turn")
    scheduled = ScheduledExecution.objects.using(patient.using).order_by("due_at", "rank", "job")
    paths: Counter[str] = Counter()
    are_all = True
    for rows in (ready, scheduled):
        found = list(map(str, rows.values_list("job__task_path", flat=True)[: NEXT + 1]))
        paths.update(found[:NEXT])
        are_all = are_all and len(found) <= NEXT
    yield from few(
        warning(
            "task-unknown",
            f"The task {name(path)}, which {BoundedCount(count, are_all).text} of the next jobs "
            "name, is not in this project.",
            "Deploy the code that has it to the workers, or add its module to "
            "STEADY_QUEUE['task_modules']. Workers without it leave such jobs to others for a "
            "while, and then fail them.",
        )
        for path, count in paths.most_common()
        if not patient.knows(path)
    )


EXAMINATIONS = (of_next_jobs,)
