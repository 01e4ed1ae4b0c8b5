"""``doctor``: why the queue, or a job, is not running."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS

from ..configured_backends import own_backends, queue_databases
from ..dialects import PROBLEM
from ..doctor import Finding, examine, examine_job
from ..printable import printable
from ..sharding.shards import shards_of
from .context import Context
from .databases import headings
from .exit_codes import DONE, FAILED, NOT_FOUND, WRONG_USAGE, Refusal
from .job_ids import JobId, chosen_backend
from .subcommand import Subcommand

UNKNOWN = ("job-unknown", "job-elsewhere")


class Doctor(Subcommand):
    """Findings, the cause first."""

    name = "doctor"
    help = "say why the queue, or a job, is not running, and what to do"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "job_id", nargs="?", type=JobId.read, metavar="JOB_ID", help="ask about one job"
        )

    def run(self, context: Context) -> int:
        job_id = context.options.get("job_id")
        databases = _databases(chosen_backend(context.options))
        if job_id is None:
            found = {using: examine(using) for using in databases}
        else:
            found = _of_job(job_id, databases)
        findings = [each for of_one in found.values() for each in of_one]
        problems = [each for each in findings if each.severity == PROBLEM]
        context.show(
            {"job_id": job_id, "findings": [each.as_json() for each in findings]},
            _lines(found),
            [each.text for each in problems] if context.prints_json else (),
        )
        if any(each.code in UNKNOWN for each in findings):
            return NOT_FOUND
        return FAILED if problems else DONE


def _databases(backend: str | None) -> list[str]:
    """Return the databases to look at, whatever is wrong with them."""
    try:
        if backend is None:
            return queue_databases() or [DEFAULT_DB_ALIAS]
        backends, shards = own_backends(), shards_of(backend)
    except ImproperlyConfigured:
        return [DEFAULT_DB_ALIAS]  # Which is the first thing that the doctor says.
    if shards:
        return [each.database for each in shards]
    if backend not in backends:
        raise Refusal(
            f"--backend {backend!r} is no Steady Queue backend in TASKS. There are: "
            f"{', '.join(sorted(backends)) or 'none'}.",
            WRONG_USAGE,
        )
    return [backends[backend].database]


def _of_job(job_id: int, databases: Sequence[str]) -> dict[str, list[Finding]]:
    """Return what is to be said of a job in the databases that have it."""
    found = {using: examine_job(job_id, using) for using in databases}
    known = {using: each for using, each in found.items() if each[0].code not in UNKNOWN}
    return known or dict(list(found.items())[:1])


def _lines(found: dict[str, list[Finding]]) -> Iterator[str]:
    # Backends can be named only if the settings are right, as they are if there are several.
    named = dict(headings(list(found))) if len(found) > 1 else {}
    for using, findings in found.items():
        yield from named.get(using, ())
        yield from _table(findings) if findings else ["Nothing is wrong."]


def _table(findings: Sequence[Finding]) -> Iterator[str]:
    width = max(len(printable(each.code)) for each in findings) + 2
    for finding in findings:
        start = f"{finding.severity:<9}{printable(finding.code):<{width}}"
        yield start + printable(finding.text)
        if finding.remedy:
            yield " " * len(start) + printable(finding.remedy)
