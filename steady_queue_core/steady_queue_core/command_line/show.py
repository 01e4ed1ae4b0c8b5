"""``show``: everything about one job."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from ..dialects.database import Database
from ..features.shown import rows_of
from ..features.shown_row import To
from ..listings.damage import read_each
from ..listings.job_rows import RELATED
from ..listings.payloads import shown_call, shown_result
from ..listings.wording import clean, moment
from ..models import Job, Process
from ..printable import indented_lines
from ..tasks.metadata import JobMetadata
from ..tasks.results import workers_of
from ..tasks.stored_errors import LatestErrors, latest_errors
from .context import Context
from .databases import described
from .exit_codes import DONE, FAILED, NOT_FOUND
from .job_ids import JobId
from .job_summary import as_json, execution, readable, state_name, when
from .subcommand import Subcommand

#: Most errors that are shown, the most recent ones.
MOST_ERRORS = 20


class Show(Subcommand):
    """One job, or several: their attempts, arguments, result and errors."""

    name = "show"
    help = "show jobs with their attempts, arguments, results and errors"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ids", nargs="+", type=JobId.read, metavar="ID", help="ids of jobs")
        parser.add_argument(
            "--traceback", action="store_true", help="also the traceback of each error"
        )

    def run(self, context: Context) -> int:
        using = context.databases.to_change()
        ids = list(dict.fromkeys(context.options["ids"]))
        rows = read(using, ids)
        jobs = [job for job in map(rows.get, ids) if job is not None]
        found = [Shown(job, context.options["traceback"]) for job in jobs]
        missing = [f"There is no job {job_id}." for job_id in ids if job_id not in rows]
        damaged = [f"The row of job {each} is damaged." for each, job in rows.items() if not job]
        data = {**described(using), "jobs": [each.as_json() for each in found]}
        lines = (line for each in found for line in each.lines())
        context.show(data, lines, [*missing, *damaged])
        return NOT_FOUND if missing else FAILED if damaged else DONE


def read(using: str, job_ids: Sequence[int]) -> dict[int, Any]:
    """Return the jobs with all of their executions, by id; ``None`` for one that is damaged."""
    jobs: Any = Job.objects.using(using).annotate(present=Database.of(using).now())
    return read_each(
        jobs.select_related(*RELATED, "retention", "checkpoint", "membership"), job_ids
    )


class Shown:
    """A job as it is shown. What is named like a secret is hidden, as in the admin."""

    def __init__(self, job: Any, with_tracebacks: bool) -> None:
        self.job, self.with_tracebacks = job, with_tracebacks
        self.metadata = JobMetadata.read(job.metadata)
        self.call, self.result = shown_call(job), shown_result(job)
        claim = execution(job, "claimedexecution")
        if claim is not None:
            claim.process = self._process(claim.process_id)

    def as_json(self) -> dict[str, Any]:
        claim = execution(self.job, "claimedexecution")
        batch = execution(self.job, "membership")
        result = self.result
        return {
            **as_json(self.job),
            "backend": self.job.backend_name,
            "scheduled_at": when(lambda: self.job.scheduled_at),
            "last_attempted_at": when(lambda: self.job.last_attempted_at),
            "process": None if claim is None else claim.process,
            "workers": workers_of(self.job.worker_ids)[-MOST_ERRORS:],
            "batch": None if batch is None else batch.batch_id,
            "features": self._features,
            "progress": None if self.job.progress is None else str(self.job.progress),
            "args": [plain(value) for value in self.call.args],
            "kwargs": plain(self.call.kwargs),
            "arguments_note": self.call.note or None,
            "result": None if result is None else plain(result.value),
            "result_note": None if result is None else result.note or None,
            "errors": [
                {"class": path, **({"traceback": text} if self.with_tracebacks else {})}
                for path, text in self._errors
            ],
        }

    def lines(self) -> Iterator[str]:
        job, known = self.job, self.as_json()
        yield f"Job {job.pk}: {clean(job.task_path)}"
        facts = [
            ("state", state_name(job) or "none: it cannot run"),
            ("queue", job.queue_name),
            ("priority", job.priority),
            ("attempts", f"{job.attempts} of {abs(job.max_attempts)}"),
            ("process", known["process"]),
            ("workers", ", ".join(known["workers"])),
            ("progress", known["progress"]),
            ("batch", known["batch"]),
            ("concurrency key", job.concurrency_key),
            *known["features"].items(),
            ("backend", job.backend_name),
            ("enqueued", _moment(job, "enqueued_at")),
            ("scheduled for", _moment(job, "scheduled_at")),
            ("first attempt", _moment(job, "started_at")),
            ("last attempt", _moment(job, "last_attempted_at")),
            ("failed" if state_name(job) == "failed" else "finished", _moment(job, "finished_at")),
        ]
        shown = [(label, clean(value)) for label, value in facts if value not in (None, "")]
        for label, value in shown:
            yield f"  {label + ':':<17}{value}"
        yield "  arguments:"
        for text in self.call.lines() if self.call.is_readable else ():
            yield from indented_lines(clean(text))
        yield from self._note(self.call.note or ("" if self.call.lines() else "(none)"))
        if self.result is not None:
            yield "  result:"
            text = clean(self.result.text)
            yield from indented_lines(text) if not self.result.note else ()
            yield from self._note(self.result.note)
        yield from self._error_lines()

    @cached_property
    def _features(self) -> dict[str, str]:
        """What the job's features show, by label."""
        return {
            label.lower(): "".join(map(_text_of, parts))
            for label, parts in rows_of(self.job, self.metadata)
        }

    @staticmethod
    def _note(note: str) -> Iterator[str]:
        if note:
            yield f"    {clean(note)}"

    def _error_lines(self) -> Iterator[str]:
        failure = execution(self.job, "failedexecution")
        if failure is not None:
            yield f"  error:           {clean(failure.exception_class)}: {clean(failure.message)}"
            if failure.fingerprint:
                yield f"  error group:     {clean(failure.fingerprint)}"
        if self._latest.is_too_long:
            yield "  errors of attempts: too long to show"
        elif self._errors:
            left = self._latest.total - len(self._errors)
            more = f", without the {left:,} before" if left else ""
            yield f"  errors of attempts, the first one first{more}:"
        for path, text in self._errors:
            yield f"    {clean(path)}"
            if self.with_tracebacks:
                yield from (f"  {line}" for line in indented_lines(clean(text)))

    @property
    def _errors(self) -> list[tuple[str, str]]:
        return [(error.path, error.traceback) for _, error in self._latest.errors]

    @cached_property
    def _latest(self) -> LatestErrors:
        return latest_errors(self.job.errors, MOST_ERRORS)

    def _process(self, process_id: Any) -> str:
        rows = Process.objects.using(self.job._state.db).filter(pk=process_id)
        return rows.values_list("name", flat=True).first() or f"process-{process_id}"


def plain(value: Any) -> Any:
    """Return a decoded value for JSON; what that does not know becomes text."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return str(value)


def _text_of(part: str | datetime | To) -> str:
    if isinstance(part, To):
        return part.text
    return moment(part) if isinstance(part, datetime) else part


def _moment(job: Any, column: str) -> str:
    found: str = readable(lambda: moment(getattr(job, column)), "")
    return found
