"""Columns of the list of batches, which its page shows as well."""

from __future__ import annotations

from typing import Any

from django.utils.safestring import SafeString

from ..batches.handle import status_of
from . import texts
from .batch_tally import Tally
from .corrupt_rows import column


@column("id")
def number(row: Any) -> str:
    return f"#{row.pk}"


@column("description")
def description(row: Any) -> str:
    return texts.named(row.description)


@column("kind")
def kind(row: Any) -> str:
    return texts.name(row.kind)


@column("status")
def status(row: Any) -> str:
    found = status_of(row).value
    is_ending = row.cancelled_at is not None and row.finished_at is None
    return f"{found}, being cancelled" if is_ending else found


@column("progress")
def progress(row: Any) -> SafeString:
    tally: Tally = row.tally
    return tally.text


@column("created")
def created(row: Any) -> str:
    return texts.moment(row.created_at)


@column("finished")
def finished(row: Any) -> str:
    return texts.moment(row.finished_at)


COLUMNS = (number, description, kind, status, progress, created, finished)
