"""Columns of the list of batches, which its page shows as well."""

from __future__ import annotations

from typing import Any

from ..batches.handle import status_of
from . import texts
from .columns import attribute, column

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
