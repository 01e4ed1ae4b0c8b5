"""What the dialect sees on its server."""

from __future__ import annotations

from collections.abc import Iterator

from ..listings import wording
from .finding import Finding
from .patient import Patient


def observations(patient: Patient) -> Iterator[Finding]:
    database = patient.database
    for code, text, remedy, severity in database.dialect.examine(database.connection):
        # Names of users, tables and programs on the server may be anything.
        yield Finding(wording.line(code), severity, wording.line(text), wording.line(remedy))


EXAMINATIONS = (observations,)
