"""The page of one job: its state, progress, timeline, failure, arguments and result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..dialects import portable
from ..features import shown
from ..listings.states import State
from ..tasks.metadata import JobMetadata
from . import texts
from .detail import Fields, Section, Table
from .job_attempts import Processes, attempts_section
from .job_links import JobLinks
from .job_texts import (
    arguments_section,
    checkpoint_section,
    errors_section,
    metadata_section,
    result_section,
    steps_section,
    workers,
)

#: By header, where its value has the id: that of W3C, which OpenTelemetry writes, and Sentry's.
FORMS = {
    "traceparent": re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}\b"),
    "sentry-trace": re.compile(r"([0-9a-f]{32})-[0-9a-f]{16}(?:-[01])?\Z"),
}


def trace_id_of(headers: Mapping[str, str]) -> str:
    """Return the id of the trace, as it is to be looked up where traces are; empty: none."""
    for name, form in FORMS.items():
        if found := form.match(headers.get(name, "")):
            return found[1]
    return ""


def sections_of(
    job: Any,
    state: State,
    links: JobLinks,
    processes: Processes,
    group: str,
    *,
    with_arguments: bool,
) -> list[Section]:
    """Return the sections of the page; arguments, and what else tasks and callers have stored, only
    ``with_arguments``. ``group``: the link to the jobs that have failed for the same cause."""
    metadata = JobMetadata.read(job.metadata)
    found: list[Section | None] = [
        _fields(job, state, links, processes.holder, metadata),
        _timeline(job, metadata),
        attempts_section(job, processes),
        _failure(job, group),
    ]
    if with_arguments:
        found += [
            arguments_section(job),
            metadata_section(metadata, len(job.metadata or "")),
            checkpoint_section(job),
            steps_section(job),
            result_section(job),
        ]
    found.append(errors_section(job))
    return [section for section in found if section is not None]


def _fields(
    job: Any, state: State, links: JobLinks, process: str, metadata: JobMetadata
) -> Section:
    return Fields(
        "Job",
        [
            ("State", state.label if state.name else "none: it cannot run"),
            ("Process", process),
            ("Progress", texts.progress(job.progress)),
            ("Task", links.task),
            ("Queue", links.queue),
            ("Priority", job.priority),
            ("Attempts", f"{job.attempts} of {abs(job.max_attempts)}"),
            ("Workers", workers(job)),
            ("Concurrency key", links.concurrency_key),
            ("Permits held by", links.holders),
            ("Concurrency limit", job.concurrency_limit),
            *((label, links.shown(parts)) for label, parts in shown.rows_of(job, metadata)),
            ("Backend", texts.clean(job.backend_name)),
            ("Trace", trace_id_of(metadata.headers)),
        ],
    )


def _timeline(job: Any, metadata: JobMetadata) -> Section:
    events: list[tuple[str, datetime | None]] = [
        *shown.events_of(job, metadata),
        ("Enqueued", job.enqueued_at),
        ("Scheduled for", job.scheduled_at),
        ("Due", _instant(job, "scheduledexecution", "due_at")),
        ("Ready", _instant(job, "readyexecution", "created_at")),
        ("Blocked", _instant(job, "blockedexecution", "created_at")),
        ("First attempt", job.started_at),
        ("Last attempt", job.last_attempted_at if job.attempts > 1 else None),
        ("Claimed", _instant(job, "claimedexecution", "created_at")),
        ("Checkpoint or progress", _instant(job, "checkpoint", "updated_at")),
        ("Failed" if _failed(job) else "Finished", job.finished_at),
    ]
    known = [(label, instant) for label, instant in events if instant is not None]
    known.sort(key=lambda event: portable.aware(event[1]))
    before = [None, *(instant for _, instant in known)]
    rows = [
        (label, texts.moment(instant), texts.between(earlier, instant))
        for (label, instant), earlier in zip(known, before, strict=False)
    ]
    return Table("Timeline", ("Event", "When", "After"), rows)


def _failure(job: Any, group: str) -> Section | None:
    if not _failed(job):
        return None
    failure = job.failedexecution
    kind, message = texts.clean(failure.exception_class), texts.clean(failure.message)
    return Fields("Failure", [("Error", kind), ("Message", message), ("Group", group)])


def _failed(job: Any) -> bool:
    return getattr(job, "failedexecution", None) is not None


def _instant(job: Any, relation: str, column: str) -> datetime | None:
    found: datetime | None = getattr(getattr(job, relation, None), column, None)
    return found
