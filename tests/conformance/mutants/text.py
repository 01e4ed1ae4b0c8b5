"""Text that is not what it was."""

from __future__ import annotations

import json
import unicodedata
from contextlib import suppress
from dataclasses import replace

from .mutant import fails, sqlite

enqueue, claim, settle = (
    sqlite.steady_queue_enqueue,
    sqlite.steady_queue_claim,
    sqlite.steady_queue_settle,
)
TEXTS = ("return_value", "errors", "worker_ids", "message")


def changed(outcomes, change):
    """Return ``outcomes`` with all their texts changed."""
    return [
        o._replace(**{f: change(getattr(o, f)) for f in TEXTS if getattr(o, f) is not None})
        for o in outcomes
    ]


def written_anew(text):
    with suppress(ValueError):
        return json.dumps(json.loads(text), sort_keys=True)
    return text


@fails("arguments_are_stored_exactly", hook="enqueue")
def stores_arguments_as_json(connection, jobs):
    return enqueue(
        connection, [replace(job, arguments=written_anew(job.arguments)) for job in jobs]
    )


@fails("arguments_are_stored_exactly", hook="enqueue")
def cuts_arguments_off(connection, jobs):
    return enqueue(connection, [replace(job, arguments=job.arguments[:65535]) for job in jobs])


@fails("arguments_are_stored_exactly", hook="claim")
def strips_arguments(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return [job._replace(arguments=job.arguments.strip()) for job in taken]


@fails("names_are_stored_exactly", hook="enqueue")
def normalises_names(connection, jobs):
    return enqueue(
        connection,
        [replace(job, task_path=unicodedata.normalize("NFC", job.task_path)) for job in jobs],
    )


@fails("names_are_stored_exactly", hook="enqueue")
def fills_in_placeholders(connection, jobs):
    return enqueue(
        connection, [replace(job, queue_name=job.queue_name.replace("%%", "%")) for job in jobs]
    )


@fails("return_values_errors_and_worker_ids_are_stored_exactly",
       "errors_of_a_retried_job_are_told_exactly",
       "messages_of_failed_jobs_are_stored_exactly", hook="settle")  # fmt: skip
def stores_ascii_only(connection, outcomes):
    return settle(
        connection, changed(outcomes, lambda text: text.encode("ascii", "replace").decode())
    )


@fails("return_values_errors_and_worker_ids_are_stored_exactly",
       "messages_of_failed_jobs_are_stored_exactly", hook="settle")  # fmt: skip
def cuts_texts_off(connection, outcomes):
    return settle(connection, changed(outcomes, lambda text: text[:65535]))


@fails("what_is_missing_is_not_an_empty_text", hook="settle")
def takes_empty_texts_for_missing(connection, outcomes):
    return settle(connection, [o._replace(errors=o.errors or None) for o in outcomes])


@fails("what_is_missing_is_not_an_empty_text", hook="settle")
def takes_missing_texts_for_empty(connection, outcomes):
    return settle(connection, [o._replace(return_value=o.return_value or "") for o in outcomes])
